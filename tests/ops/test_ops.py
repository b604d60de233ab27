"""Translations of ours, the passes before them and what folds behind them: the exported function equals the eager one, on other data and,
where a dim is dynamic, on other sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from parity import check
from torch import nn
from torch.nn import functional

import onnxplain
from onnxplain import Level

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]

X = (torch.randn(3, 8, 6),)
IMAGE = (torch.randn(2, 4, 9, 7),)
INTS = (torch.arange(-6, 6).reshape(3, 4), torch.tensor([[3], [-2], [5]]))
BOOLS = (torch.randn(3, 4) > 0, torch.randn(3, 4) > 0)
MIXED = (torch.randn(3, 4), torch.arange(12).reshape(3, 4))


def layer(module: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for value in (*module.parameters(), *(each for each in module.buffers() if each.is_floating_point())):
            value.data = torch.rand_like(value) + 0.5
    return module.eval()


class WeightAsOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, self.weight


def known_numbers() -> torch.Tensor:
    """Made of constants alone, in as many ways as fold."""
    a = torch.arange(6)
    b = torch.stack([a.cumsum(0), a.flip(0)])
    c = (
        b[torch.tensor([1, 0, 1]), torch.tensor([5, 0, 2])].sum()
        + b.amax(1).prod()
        - b.amin()
        + b.gather(1, torch.tensor([[0, 5], [1, 1]])).max()
    )
    d = torch.ones(6, 6).tril().sum(1) + torch.ones(6, 6).triu(1)[2] + torch.sign(a - 3.0)
    return d * c + (a & 3) + (a | 1) + (~a)


def scattered(x: torch.Tensor, reduce: str, include_self: bool) -> torch.Tensor:
    index = torch.tensor([[0, 2, 0], [1, 1, 0]]).reshape(2, 3, *[1] * (x.ndim - 2))
    return x.scatter_reduce(0, index, x[1:3] * 2, reduce, include_self=include_self)


CASES: dict[str, Case] = {
    "conv1d": (layer(nn.Conv1d(8, 4, 3)), X),
    "conv1d-same": (layer(nn.Conv1d(8, 4, 4, padding="same", dilation=2)), X),
    "conv1d-no-batch": (layer(nn.Conv1d(8, 4, 3)), (torch.randn(8, 6),)),
    "conv2d-no-bias": (layer(nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), groups=2, bias=False)), IMAGE),
    "conv3d-no-bias": (layer(nn.Conv3d(2, 3, 2, bias=False)), (torch.randn(1, 2, 4, 5, 3),)),
    "conv-transpose1d": (layer(nn.ConvTranspose1d(8, 4, 3, stride=2, padding=1, output_padding=1)), X),
    "conv-transpose2d": (layer(nn.ConvTranspose2d(4, 6, 3, groups=2, dilation=2)), IMAGE),
    "batch-norm": (layer(nn.BatchNorm2d(4)), IMAGE),
    "batch-norm-plain": (layer(nn.BatchNorm2d(4, affine=False)), IMAGE),
    "batch-norm-batch-statistics": (layer(nn.BatchNorm1d(8, track_running_stats=False)), X),
    "batch-norm-function": (lambda x: functional.batch_norm(x, torch.zeros(8), torch.ones(8), training=True), X),
    "batch-norm-native": (
        lambda x: (
            torch.ops.aten._native_batch_norm_legit.no_stats(x, None, torch.arange(8.0), True, 0.1, 1e-3),
            torch.ops.aten.native_batch_norm(x, None, None, torch.ones(8), torch.ones(8) * 2, False, 0.1, 1e-5)[0],
        ),
        X,
    ),
    "instance-norm": (lambda x: functional.instance_norm(x, torch.zeros(8), torch.ones(8)), X),
    "instance-norm-running": (lambda x: functional.instance_norm(x, torch.ones(8), torch.ones(8) * 2, use_input_stats=False), X),
    "dropout": (layer(nn.Dropout(0.5)), X),
    "searchsorted": (lambda s, v: torch.searchsorted(s.sort()[0], v), (torch.randn(5), torch.randn(2, 3))),
    "searchsorted-rows": (
        lambda s, v: torch.searchsorted(s.sort()[0], v, right=True, out_int32=True),
        (torch.arange(8).reshape(2, 4), torch.arange(6).reshape(2, 3)),
    ),
    "searchsorted-sorter": (lambda s, v: torch.searchsorted(s, v, sorter=s.argsort()), (torch.randn(2, 5), torch.randn(2, 3))),
    "sparse": (lambda x: (x.to_sparse() * 2).to_dense() + 1, (torch.randn(3, 4).relu(),)),
    "sparse-mm": (lambda a, b: torch.sparse.mm(a.to_sparse(), b), (torch.eye(4), torch.randn(4, 3))),
    "sparse-addmm": (lambda a, b: torch.sparse.addmm(b, a.to_sparse(), b, beta=2.0, alpha=0.5), (torch.eye(4), torch.randn(4, 3))),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), X),
    "cdist": (lambda a, b: torch.cdist(a, b), (torch.randn(2, 4, 3), torch.randn(2, 5, 3))),
    "cdist-1": (lambda a, b: torch.cdist(a, b, p=1.0), (torch.randn(4, 3), torch.randn(5, 3))),
    "cdist-0": (lambda a, b: torch.cdist(a, b, p=0.0), (torch.ones(4, 3).tril(), torch.ones(5, 3).triu())),
    "cdist-inf": (lambda a, b: torch.cdist(a, b, p=float("inf")), (torch.randn(4, 3), torch.randn(5, 3))),
    "cdist-3": (lambda a, b: torch.cdist(a, b, p=3.0), (torch.randn(4, 3), torch.randn(5, 3))),
    "cumprod": (lambda x: torch.cumprod(x, 1), X),
    "cumprod-vector": (lambda x: torch.cumprod(x, -1, dtype=torch.float64), (torch.tensor([2, 0, -3]),)),
    "adaptive-pool": (lambda x: functional.adaptive_avg_pool2d(x, (1, 1)), IMAGE),
    "adaptive-pool-1d": (lambda x: functional.adaptive_avg_pool1d(x.transpose(1, 2), 1), X),
    "adaptive-pool-no-batch": (lambda x: functional.adaptive_avg_pool1d(x, 1), X),
    "adaptive-pool-divides": (lambda x: functional.adaptive_avg_pool1d(x, 3), X),
    "adaptive-pool-overlaps": (lambda x: functional.adaptive_avg_pool2d(x, (4, None)), IMAGE),
    "adaptive-pool-3d": (lambda x: functional.adaptive_avg_pool3d(x[:, :, None], (1, 2, 3)), IMAGE),
    "split": (lambda x: torch.split(x, 3, dim=1), X),
    "split-sizes": (lambda x: torch.split(x, [1, 5, 2], dim=1), X),
    "split-one": (lambda x: x.split(8, 1)[0] + 1, X),
    "chunk": (lambda x: x.chunk(4, dim=2), X),
    "unbind": (lambda x: x.unbind(1), X),
    "unbind-one": (lambda x: x[:, :1].unbind(1), X),
    "view": (lambda x: x.view(6, -1).transpose(0, 1).reshape(-1), X),
    "diff": (lambda x: x.diff(dim=1), X),
    "and": (lambda a, b: a & b, BOOLS),
    "or-ints": (lambda a, b: a | b, INTS),
    "xor": (lambda a, b: a ^ b, BOOLS),
    "min-max": (lambda a, b: (torch.min(a, b), torch.max(a, b)), INTS),
    "amax-of-all": (lambda x: x.amax(), X),
    "int-plus-float": (lambda a, b: a + 1.5 * b, INTS),
    "float-times-int": (lambda a, b: a * b - b, MIXED),
    "int-by-int": (lambda a, b: a / b, INTS),
    "floor-and-remainder": (lambda a, b: (a // b, a % b), INTS),
    "compare-float-int": (lambda a, b: (a > b, a == b, a <= 2), MIXED),
    "where": (lambda a, b: torch.where(a > 0, a, b), MIXED),
    "cat-of-dtypes": (lambda a, b: torch.cat([a, b]), MIXED),
    "sum-of-bools": (lambda a, b: (a.sum(), b.sum(dim=1)), BOOLS),
    "mean-of-casts": (lambda a, b: (a.double() + b).mean(), MIXED),
    "sin-of-ints": (lambda a, b: torch.sin(a) + torch.sqrt(torch.abs(b)), INTS),
    "to": (lambda a, b: (a.to(torch.int32), a.type_as(b), b.to(a), a.to("cpu", torch.float16)), MIXED),
    "fill": (lambda x: torch.zeros_like(x).fill_(3.0), X),
    "brain-float": (lambda x: functional.conv1d(x.bfloat16(), torch.ones(2, 8, 3).bfloat16() / 8).float(), X),
    "large-ints": (lambda a, b: a + b + torch.tensor([2**62 + 1, -(2**62) - 1, 7, -7]).div(torch.tensor(2), rounding_mode="trunc"), INTS),
    "vmap": (lambda x: torch.vmap(lambda row: (row @ row.T).softmax(0))(x), X),
    "vmap-of-two": (lambda x: torch.vmap(torch.vmap(lambda a, b: a * b.sum(), in_dims=(0, None)), in_dims=(0, 0))(x, x), X),
    "squeeze": (lambda x: (x[:, :1].squeeze(), x[:1].squeeze((0, 1)), x[:, :1].squeeze(1), x.squeeze(0)), X),
    "no-grad": (torch.no_grad()(lambda x: x * 2 + 1), X),
    "pads-with-negative": (lambda x: functional.pad(x, (-1, 2)), X),
    "input-is-output": (lambda x: x, X),
    "output-twice": (lambda x: (y := x * 2, y, x), X),
    "constant-is-output": (lambda x: (x + 1, torch.ones(2)), X),
    "weight-is-output": (WeightAsOutput(), X),
    "numbers-are-outputs": (lambda x: (x + 1, 3, 2.5, True), X),
    "index": (lambda x: (x[:, torch.tensor([1, -1, 0])], x[torch.tensor([[0, 2], [1, 1]])], x[..., torch.tensor(2)]), X),
    "index-by-two": (lambda x: (x[torch.tensor([0, 2]), :, torch.tensor([1, 3])], x[torch.tensor([0, 2]), torch.tensor([1, 3])]), X),
    "index-by-bools": (lambda x: x[:, torch.tensor([True, False] * 4)], X),
    "avg-pool": (lambda x: functional.avg_pool2d(x, (3, 2), stride=2, padding=1, divisor_override=5), IMAGE),
    "avg-pool-plain": (lambda x: functional.avg_pool2d(x, 2, padding=1, count_include_pad=False, ceil_mode=True), IMAGE),
    "avg-pool-no-batch": (lambda x: functional.avg_pool3d(x, 2), (torch.randn(2, 4, 6, 4),)),
    "scatter-reduce": (lambda x: [scattered(x, name, own) for name in ("sum", "mean", "prod", "amax", "amin") for own in (True, False)], X),
    "scatter-reduce-scalar": (lambda x: x[0, 0, 0].scatter_reduce(0, torch.tensor(0), x[1, 1, 1], "mean"), X),
    "scatter-reduce-ints": (lambda a, b: scattered(a, "amax", False) + scattered(a, "amin", False) + b, INTS),
    "known-numbers": (lambda x: x[0, 0] + known_numbers(), X),
    "complex-arithmetic": (
        lambda a, b: [
            torch.view_as_real(each.resolve_conj())
            for z in [torch.complex(a, b)]
            for w in [torch.complex(b, a + 1)]
            for each in (
                *(z + w, z - w, z * w, z / w, z * a, b * z, z / b, a / z, z + a, a - z, z * 2, z / 2.5, 1 / z, z * 1j, a * 1j, 2 - z),
                *(z.reciprocal(), z.conj(), -z, z.exp(), z.log(), z.sqrt(), z.sgn(), z**3, z**-2, z**0, z**0.5, z**w, 2**z),
                *(z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh(), z.sigmoid(), z.log1p(), z.rsqrt()),
            )
        ],
        (torch.randn(3, 4), torch.randn(3, 4)),
    ),
    "complex-shapes": (
        lambda x: [
            torch.view_as_real(each.resolve_conj())
            for z in [torch.complex(x, x.cos())]
            for each in (
                *(z[:, -1], z[..., 1:3], z.select(-1, 2), z[..., torch.tensor([0, 3])], z.index_select(-1, torch.tensor([1, 0]))),
                *(z.reshape(-1), z.flatten(1), z.transpose(-1, -2), z.permute(2, 0, -2), z.unsqueeze(-1), z[:1].squeeze(0), z.mT, z.mH),
                *(z[..., :1].squeeze(-1), z.expand(2, -1, -1, -1), z.repeat(1, 2, 1), torch.cat([z, z], -1), torch.stack([z, x], -1)),
                *(*z.split(2, -1), *z.chunk(3, -1), *z.unbind(-1), z.flip(-1), z.roll(2, -1), z.roll(5), functional.pad(z, (1, 2))),
                *(z.sum(), z.sum(-1), z.sum((0, -2), keepdim=True), z.mean(), z.mean(-1), z.cumsum(-1), z[0, 0, 0].sum()),
                *(torch.where(x > 0, z, z * 2), torch.where(x > 0, z, 0.0), z.masked_fill(x > 0, 2j), torch.zeros_like(z), x.to(z)),
                *(z @ z.mT, torch.einsum("bij,bkj->bik", z, z.conj()), torch.full_like(x, 2j, dtype=torch.complex64)),
            )
        ],
        X,
    ),
    "complex-to-real": (
        lambda x: [
            each
            for z in [torch.polar(x, x.exp())]
            for each in (z.abs(), z.angle(), z.real, z.imag, z == z, z != x, torch.linalg.vector_norm(z, dim=-1), z.isnan())
        ],
        X,
    ),
    "fft": (
        lambda x: [
            torch.view_as_real(each) if each.is_complex() else each
            for norm in (None, "ortho", "forward")
            for z in [torch.fft.fft(x, norm=norm)]
            for each in (
                *(z, torch.fft.ifft(z, dim=-2, norm=norm), torch.fft.rfft(x, dim=1, norm=norm), torch.fft.irfft(z, norm=norm, n=7)),
                *(torch.fft.fft(z, n=8, norm=norm), torch.fft.fft2(x, norm=norm), torch.fft.irfft2(z, norm=norm)),
                *(torch.fft.rfftn(x, norm=norm), torch.fft.ifftn(z, dim=(0, 2), norm=norm), torch.fft.ifftshift(z, dim=-1)),
            )
        ],
        X,
    ),
    "stft": (
        lambda x: torch.stft(x[0], 4, window=torch.hann_window(4), return_complex=True).abs(),
        X,
    ),
    "cross-entropy": (
        lambda x: [
            functional.cross_entropy(logits, target, weight=weight, reduction=reduction, label_smoothing=smoothing)
            for target, logits in ((torch.tensor([1, -100, 3]), x[:, :, 0]), (x.argmax(1).clamp(1), x), (torch.tensor(2), x[0, :, 0]))
            for weight in (None, torch.arange(1.0, 9.0))
            for reduction in ("none", "mean", "sum")
            for smoothing in (0.0, 0.1)
        ],
        X,
    ),
    "cross-entropy-probabilities": (
        lambda x: [
            functional.cross_entropy(logits, logits.softmax(-1), weight=torch.arange(1.0, 9.0), reduction=reduction, label_smoothing=0.1)
            for logits in (x, x[0, :, 0])
            for reduction in ("none", "mean", "sum")
        ],
        X,
    ),
    "gru-cell": (layer(nn.GRUCell(6, 5)), (torch.randn(3, 6), torch.randn(3, 5))),
    "lstm-cell": (layer(nn.LSTMCell(6, 5, bias=False)), (torch.randn(3, 6),)),
    "rnn-cells": (
        lambda x, h, w: (functional.relu(x), torch.rnn_tanh_cell(x, h, w, w), torch.rnn_relu_cell(x, h, w, w)),
        (torch.randn(3, 6), torch.randn(3, 6), torch.randn(6, 6)),
    ),
    "masked-select": (lambda x: (x.masked_select(x > 0), torch.masked_select(x[0, 0], x[:1, :1, 0] > -9)), X),
    "quantile": (
        lambda x: (
            *(x.quantile(0.3), x.quantile(0.5, dim=-1, keepdim=True), x.quantile(0.3, keepdim=True)),
            *(x.quantile(torch.tensor([0.1, 0.9]), dim=dim, keepdim=keep) for dim in (None, 0, 1) for keep in (False, True)),
            *(x.quantile(torch.tensor([0.1, 0.9]), 1, interpolation=each) for each in ("lower", "higher", "nearest", "midpoint")),
            *(torch.where(x > 1, torch.nan, x).quantile(0.2, dim=1).isnan(), torch.where(x > 1, torch.nan, x).median(1)[0].isnan()),
        ),
        X,
    ),
    "median": (lambda x: (x.median(), *x.median(1), *x.median(-1, keepdim=True), *x.kthvalue(2), *x.kthvalue(3, 0, True)), X),
    "cummax": (lambda x: (*x.cummax(1), *x.cummin(-1), *x.round().cummax(0), *x.round().int().cummin(1)), X),
    "aminmax": (lambda x: (*x.aminmax(dim=1), *torch.std_mean(x), torch.hypot(x, x + 1), torch.fmin(x, x * 2), torch.fmax(x, x * 2)), X),
    "erf-double": (lambda x: torch.erf(x.double()), X),
    "logcumsumexp": (lambda x: (x.logcumsumexp(1), x.logcumsumexp(-1)), X),
    "nested-output": (lambda x: {"a": x + 1, "b": [x * 2, None]}, X),
}


OLD = torch.__version__ < torch.torch_version.TorchVersion("2.12")


def skip_if_old(name: str) -> None:
    if OLD and name in ("quantile", "order"):
        pytest.skip("torch.export cannot capture aten::quantile before torch 2.12")


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str) -> None:
    skip_if_old(name)
    function, args = CASES[name]
    program = onnxplain.export(function, args)
    assert not [each for each in program.diagnostics.findings if each.level is not Level.NOTE]
    check(function, program, tuple(arg.flip(0) for arg in args))


class Trained(nn.Module):
    """Its parameter has the name of a Python function, and its batch norm counts the batches in place."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.norm(input)
        assert self.norm.running_mean is not None
        assert self.norm.running_var is not None
        return result, self.norm.running_mean + 0, self.norm.running_var * 2


def test_batch_norm_in_training() -> None:
    program = onnxplain.export(copy.deepcopy(Trained()), X)
    assert {each.rule.id for each in program.diagnostics.findings} == {"OXP1007", "OXP2003"}
    check(Trained(), program, (X[0] * 2 + 1,))


DYNAMIC: dict[str, Callable[[torch.Tensor], Any]] = {
    "view": lambda x: x.view(x.size(0), -1),
    "adaptive-pool": lambda x: functional.adaptive_avg_pool1d(x, 4),
    "adaptive-pool-any": lambda x: functional.adaptive_avg_pool2d(x[None], (3, 2)),
    "cumprod": lambda x: torch.cumprod(x, 0),
    "cdist": lambda x: torch.cdist(x, x[:1], p=1.0),
    "adaptive-pool-of-dynamic": lambda x: functional.adaptive_avg_pool2d(x[None], 1),
    "view-two-dynamic": lambda x: x.reshape(x.size(0) * x.size(1), x.size(2)),
    "flatten": lambda x: x.flatten(0, 1),
    "zeros-of-size": lambda x: x + torch.zeros(x.size(0), 1, x.size(2)),
    "arange-of-size": lambda x: x.sum(dim=(1, 2)) + torch.arange(x.size(0)),
    "expand": lambda x: x[:, :1].expand(-1, x.size(1), -1) * 2,
    "slice-by-size": lambda x: x[:, : x.size(1) // 2],
    "scale-by-size": lambda x: x / x.size(1) + x.size(0) ** 0.5,
    "arithmetic": lambda x: x.new_ones((x.size(0) * 2 + 1) // 2 - 1 + x.size(1) % 3),
    "pad-to-even": lambda x: functional.pad(x, (0, 0, 0, x.size(1) % 2)),
    "chunk-dynamic": lambda x: torch.cat(x.chunk(2, dim=1), dim=2),
    "compare-with-size": lambda x: (x > x.size(1)) | (x.size(0) * x < 1),
    "size-is-output": lambda x: (x * 2, x.size(0), x.size(1) + 1),
    "order": lambda x: (x.quantile(0.3, dim=0), x.median(1)[0], x.cummax(0)[0], x.logcumsumexp(1), x.masked_select(x > 0)),
    "complex": lambda x: (
        torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * x.size(0), norm="ortho"),
        torch.view_as_real(torch.complex(x, x).flatten(0, 1)[: x.size(1) // 2].expand(2, -1, -1)),
    ),
    "interpolate": lambda x: functional.interpolate(x, scale_factor=2.0),
    "softmax": lambda x: x.softmax(-1) @ x.transpose(1, 2),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_other_sizes(name: str) -> None:
    skip_if_old(name)
    function = DYNAMIC[name]
    shapes = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    program = onnxplain.export(function, (torch.randn(3, 8, 6),), dynamic_shapes=shapes)
    assert program.diagnostics.findings == ()
    for sizes in ((3, 8, 6), (5, 4, 6), (2, 10, 6)):
        check(function, program, (torch.randn(sizes),))
