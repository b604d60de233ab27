"""Functions whose arguments torch takes as numbers, called with sizes: the exported model computes them for every size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from marks import skip_if_old_runtime
from torch import Tensor, nn

import onnxplain
from onnxplain.torch_internals import size_arguments

SIZES = ((2, 3, 6, 8), (3, 3, 10, 12), (1, 3, 7, 9))


def last(x: Tensor) -> int:
    return x.shape[3]


def high(x: Tensor) -> int:
    return x.shape[2]


def _marked(rows: Tensor, count: int) -> Tensor:
    """As many rows as Python asks for."""
    return rows + 1 if rows.shape[0] == count else rows


def _at(x: Tensor, places: Tensor) -> Tensor:
    """The elements of the first row of columns at pairs of places, the second of them from a longer row."""
    line = x[0, 0, :, 0]
    return line[places[0]] - torch.cat([line, line])[places[1]] * places[0]


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "average of an image": lambda x: F.avg_pool2d(x, x.shape[2:]),
    "average of an image without a batch": lambda x: F.avg_pool2d(x[0], x.shape[2:]),
    "average of a column": lambda x: F.avg_pool2d(x, (high(x), 1)),
    "average of a column, padded": lambda x: F.avg_pool2d(x, (high(x), 3), 1, (0, 1), count_include_pad=False),
    "average of a column, module": lambda x: nn.AvgPool2d((high(x), 3), stride=1)(x),
    "average of a line": lambda x: F.avg_pool1d(x[0], last(x)),
    "maximum of an image": lambda x: F.max_pool2d(x, kernel_size=x.shape[2:]),
    "maximum of a column": lambda x: F.max_pool2d(x, kernel_size=(high(x), 2), stride=(1, 2)),
    "norm of an image": lambda x: F.lp_pool2d(x.abs(), 2, x.shape[2:]),
    "adaptive average of a column": lambda x: nn.AdaptiveAvgPool2d((1, None))(x),
    "adaptive average of both": lambda x: F.adaptive_avg_pool2d(x, (high(x), last(x))) * 1,
    "adaptive average to a size": lambda x: nn.AdaptiveAvgPool2d((None, 3))(x),
    "adaptive average to half": lambda x: F.adaptive_avg_pool2d(x, (high(x) // 2, last(x) // 2)),
    "adaptive average to sizes of three dims": lambda x: F.adaptive_avg_pool3d(x[:, None], (None, 1, 3)),
    "adaptive maximum": lambda x: nn.AdaptiveMaxPool2d(1)(x),
    "adaptive maximum of a column": lambda x: nn.AdaptiveMaxPool2d((1, None))(x),
    "adaptive maxima": lambda x: torch.cat([F.adaptive_max_pool2d(x, count).flatten(1) for count in (1, 2, 4)], 1),
    "adaptive maxima of a line": lambda x: F.adaptive_max_pool1d(x[0], 2),
    "adaptive maxima and places": lambda x: torch.cat([each.float() for each in F.adaptive_max_pool2d(x, (2, 3), return_indices=True)]),
    "linspace": lambda x: torch.linspace(0, 1, high(x))[:, None] * x,
    "linspace of an expression": lambda x: torch.linspace(-1, 1, 2 * high(x) + 1) * x.sum(),
    "linspace to a size": lambda x: torch.linspace(start=0.5, end=high(x) - 0.5, steps=high(x), dtype=x.dtype)[:, None] * x,
    "linspace in double": lambda x: torch.linspace(-1.0, 1.0, high(x), dtype=torch.float64) * x.sum(),
    "linspace from a tensor": lambda x: torch.linspace(x.min(), 3.0, high(x)),
    "attention scaled by a size": lambda x: F.scaled_dot_product_attention(x, x, x, scale=1 / high(x)),
    "attention scaled by a root": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=high(x) ** -0.5),
    "attention that a size makes causal": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=high(x) > 6),
    "attention with a mask that a size makes causal": lambda x: F.scaled_dot_product_attention(
        x, x, x, x.new_ones(high(x), high(x)).tril(), is_causal=high(x) < 1 and True
    ),
    "places above the diagonal": lambda x: _at(x, torch.triu_indices(high(x), high(x), 1)),
    "places of a triangle": lambda x: _at(x, torch.tril_indices(row=high(x), col=high(x), dtype=torch.int32).long()),
    "places of a triangle with a number": lambda x: _at(x, torch.triu_indices(high(x), 5, -1)),
    "places of a triangle from a size on": lambda x: _at(x, torch.tril_indices(high(x), high(x) + 1, high(x) // 2)),
    "distances": lambda x: torch.cdist(x[0], x[0]),
    "elements along a dim": lambda x: torch.take_along_dim(x, x.argsort(2), 2) + x.take_along_dim(x.argmax(3, keepdim=True), dim=-1),
    "parts": lambda x: torch.cat([*torch.tensor_split(x, 3, -1)][::-1], -1),
    "parts of two dims": lambda x: x.tensor_split(sections=2, dim=2)[0].mean(2) + torch.tensor_split(x, sections=3)[0].mean(),
    "elements of one for all": lambda x: torch.take_along_dim(x[:, :1], x.argsort(3)[..., :2], 3),
    "Kronecker product": lambda x: torch.kron(x[0, 0], x[0]),
    "Kronecker product with a vector": lambda x: torch.kron(x[0], torch.tensor([1.0, 2.0])),
    "gradients": lambda x: torch.gradient(x, dim=(2, 3))[0] + torch.gradient(x, dim=-1)[0],
    "gradients with distances": lambda x: torch.gradient(x, spacing=[0.5, 2], dim=[2, 3], edge_order=2)[1],
    "gradients of second order": lambda x: torch.gradient(x, spacing=0.5, dim=2, edge_order=2)[0],
    "gradients with places": lambda x: torch.gradient(x, spacing=[torch.arange(last(x)) ** 1.5], dim=3)[0],
    "gradients of second order with places": lambda x: torch.gradient(
        x, spacing=[torch.arange(high(x)) ** 1.5, torch.arange(last(x)) ** 2.0], dim=(2, 3), edge_order=2
    )[0],
    "linspace of one": lambda x: torch.linspace(2, 5, high(x) // high(x)) * x.sum(),
    "linspace of two": lambda x: torch.linspace(2, 5, high(x) // high(x) + 1)[:, None, None] * x[:, :1],
    "logspace of tens in double": lambda x: torch.logspace(-1, 1, steps=high(x), dtype=torch.float64)[:, None] * x,
    "hann in double": lambda x: torch.hann_window(last(x), dtype=torch.float64) * x,
    "hamming by default": lambda x: torch.hamming_window(last(x)) * x,
    "kaiser by default": lambda x: torch.kaiser_window(last(x)) * x,
    "average of an image in one number": lambda x: F.avg_pool1d(x[:, :, 0], last(x), None),
    "maximum of a line with a stride": lambda x: F.max_pool1d(x[0], last(x), stride=2),
    "adaptive average to one": lambda x: F.adaptive_avg_pool2d(x, (1, last(x))),
    "logspace": lambda x: torch.logspace(0, 3, high(x), base=2.0)[:, None] * x,
    "one_hot": lambda x: F.one_hot(x.argmax(3), num_classes=last(x)),
    "sqrt": lambda x: (x @ x.transpose(2, 3) / math.sqrt(last(x))).softmax(-1),
    "hann": lambda x: torch.hann_window(last(x)) * x,
    "hann of one": lambda x: torch.hann_window(high(x) // high(x)) * x,
    "hamming": lambda x: torch.hamming_window(last(x), False, 0.5, 0.4) * x,
    "blackman": lambda x: torch.blackman_window(last(x), periodic=False) * x,
    "bartlett": lambda x: torch.bartlett_window(last(x)) * x,
    "kaiser": lambda x: torch.kaiser_window(last(x), periodic=False, beta=5.0) * x,
    "gaussian": lambda x: torch.signal.windows.gaussian(last(x)) * x,
    "affine grid": lambda x: F.grid_sample(
        x, F.affine_grid(torch.eye(2, 3)[None].expand(x.shape[0], -1, -1), list(x.shape), align_corners=False), align_corners=False
    ),
    "sizes as a tensor": lambda x: x * torch.as_tensor(x.shape[2:], dtype=x.dtype).sum(),
    "sizes of several images as a tensor": lambda x: x * torch.as_tensor([(high(x), last(x)), [2, high(x) // 2]], dtype=x.dtype).sum(),
    "a size as a tensor": lambda x: x * torch.as_tensor(high(x)),
    "sequences padded": lambda x: nn.utils.rnn.pad_sequence([x[0, 0], x[0, 1, 2:], x[0, 2, :, :1].expand(-1, last(x))]),
    "sequences padded with a number": lambda x: nn.utils.rnn.pad_sequence([x[0, 0, 0, 2:], x[0, 0, :, 0]], True, -1.0),
    "sequences padded at the left": lambda x: nn.utils.rnn.pad_sequence(tuple(x[0, 0, : high(x) - k] for k in range(3)), True, 0.5, "left"),
    "sequences of numbers padded": lambda x: nn.utils.rnn.pad_sequence([x[0, 0, 0, 2:].argsort(), x[0, 0, :, 0]], padding_value=7),
    "transforms": lambda x: torch.fft.irfft2(torch.fft.rfft2(x) * 2, s=x.shape[2:]),
    "angles of pairs": lambda x: F.cosine_similarity(x[:, :, None], x[:, :, :, None], dim=1),
    "transposed convolution to a size": lambda x: F.conv_transpose2d(
        F.conv2d(x, torch.ones(3, 3, 3, 3), stride=2, padding=1),
        torch.ones(3, 3, 3, 3),
        stride=2,
        padding=1,
        output_padding=((high(x) + 1) % 2, (last(x) + 1) % 2),
    ),
    "repeated by sizes": lambda x: _marked(torch.arange(2).repeat_interleave(torch.tensor([high(x), last(x)])), high(x) + last(x)),
    "repeated by a constant": lambda x: _marked(torch.repeat_interleave(x[0, :2], torch.tensor([2, 1]), dim=0), 3),
    "repeated by one constant": lambda x: _marked(torch.repeat_interleave(x[0], torch.tensor([2]), 0), 6),
    "kernel": lambda x: F.conv2d(x, x[:1, :, 1:, 1:]),
}


class Calls(torch.nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_eager_at_every_size(name: str) -> None:
    skip_if_old_runtime(name, "hann in double")
    function = FUNCTIONS[name]
    shapes = ({0: "batch", 2: "height", 3: "width"},)
    program = onnxplain.export(Calls(function), (torch.randn(SIZES[0]),), dynamic_shapes=shapes)
    assert {finding.rule.id for finding in program.diagnostics.findings} <= {"OXP1040"}
    for sizes in SIZES:
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], function(x), atol=1e-4, rtol=1e-4)


POOLS = {"average": F.avg_pool2d}


class Holds(torch.nn.Module):
    """Calls a function of torch that it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.as_tensor = torch.as_tensor

    def forward(self, x: Tensor, pool: Callable[..., Tensor] = F.avg_pool2d, method: Callable[..., Tensor] = Tensor.new_tensor) -> Tensor:
        numbers = self.as_tensor([high(x), 2]).sum() + method(x, [last(x), 3]).sum()
        return POOLS["average"](x, x.shape[2:]) + pool(x, (high(x), 1)) * numbers


def test_functions_that_a_model_holds() -> None:
    program = onnxplain.export(Holds(), (torch.randn(SIZES[0]),), dynamic_shapes=({0: "batch", 2: "height", 3: "width"},))
    assert program.diagnostics.findings == ()
    for sizes in SIZES:
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], Holds()(x), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("generator", [None, torch.Generator()], ids=["none", "own"])
def test_random_numbers_with_a_generator(generator: torch.Generator | None) -> None:
    def function(x: Tensor) -> Tensor:
        made = torch.randn(x.shape, generator=generator) + torch.rand_like(x, generator=generator)
        return x + 0 * made.exponential_(generator=generator) + 0 * torch.randperm(last(x), generator=generator)

    program = onnxplain.export(Calls(function), (torch.randn(SIZES[0]),), dynamic_shapes=({0: "batch", 2: "height", 3: "width"},))
    for sizes in SIZES:
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.avg_pool2d(x, (6, 8)),
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
        lambda x: F.adaptive_avg_pool2d(x, (None, 3)),
        lambda x: torch.linspace(0, 1, 8) * x * torch.hann_window(8) * math.sqrt(2),
        lambda x: F.one_hot(x.argmax(3), 8),
    ],
)
def test_numbers_stay_numbers(function: Callable[[Tensor], Any]) -> None:
    x = torch.randn(SIZES[0])
    torch.testing.assert_close(onnxplain.export(Calls(function), (x,))(x)[0], function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.linspace(0, 10, last(x), dtype=torch.int64) + x.argmax(2),
        lambda x: F.max_pool2d(x, (high(x), 1), return_indices=True)[1],
        lambda x: F.avg_pool2d(x, (high(x), 1), divisor_override=3),
        lambda x: torch.logspace(0, 2, last(x), dtype=torch.int64) + x.argmax(2),
        lambda x: F.max_pool2d(x, (high(x), 1), padding=(1, 0)),
    ],
)
def test_what_no_formula_covers_is_refused_at_its_line(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Calls(function), (torch.randn(SIZES[0]),), dynamic_shapes=({2: "height", 3: "width"},))
    assert {each.rule.id for each in failed.value.findings} == {"OXP1003"}


# NOTE: calls with plain numbers, which have their own results while sizes are taken.
PLAIN: dict[str, Callable[[], Any]] = {
    "sqrt": lambda: torch.tensor(math.sqrt(2)),
    "as_tensor": lambda: torch.as_tensor([1, 2], dtype=torch.int32),
    "as_tensor of an array": lambda: torch.as_tensor(torch.ones(2).numpy()),
    "linspace": lambda: torch.linspace(0, 1, 7),
    "linspace in integers": lambda: torch.linspace(0, 10, steps=4, dtype=torch.int32),
    "linspace into another": lambda: torch.linspace(0, 1, 5, out=torch.empty(5, dtype=torch.float64)),
    "logspace": lambda: torch.logspace(0, 1, 7),
    "logspace in integers": lambda: torch.logspace(0, 3, 4, 3.0, dtype=torch.int64),
    "logspace of rounded integers": lambda: torch.logspace(0.5, 2.5, 3, dtype=torch.int64),
    "logspace into another": lambda: torch.logspace(0, 1, 5, base=2.0, out=torch.empty(5, dtype=torch.float64)),
    "pad_sequence": lambda: nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], padding_value=2),
    "one_hot": lambda: F.one_hot(torch.tensor([0, 2])),
    "one_hot of five": lambda: F.one_hot(torch.tensor([0, 2]), 5),
    **{
        f"{name} {args} {kwargs}": lambda name=name, args=args, kwargs=kwargs: getattr(torch, name)(*args, **kwargs)
        for name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")
        for args, kwargs in (((1,), {}), ((8,), {}), ((8, False), {}), ((), {"window_length": 7, "dtype": torch.float64}))
    },
    "average pool": lambda: F.avg_pool2d(torch.arange(36.0).view(1, 6, 6), 6),
    "maximum pool with places": lambda: F.max_pool1d(torch.arange(6.0).view(1, 6), 6, return_indices=True)[1],
    "adaptive pool": lambda: F.adaptive_max_pool1d(torch.arange(6.0).view(1, 6), 1),
}


@pytest.mark.parametrize("call", PLAIN.values(), ids=PLAIN)
def test_calls_with_numbers_are_torchs_own(call: Callable[[], Tensor]) -> None:
    with size_arguments.taken():
        result = call()
    torch.testing.assert_close(result, call(), rtol=0, atol=0)
