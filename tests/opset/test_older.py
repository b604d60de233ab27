"""Opsets before 18: what they can say runs and equals eager PyTorch, and what they cannot is a finding with the opset that can."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F
from zoo import CASES, Case

import onnxplain

OPSETS = (11, 12, 13, 15, 17)

FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "reductions": lambda x: (x.sum(1), x.amax((0, 2)), x.mean(), x.logsumexp(-1, keepdim=True), x.prod(0), x.norm(dim=2)),
    "axes": lambda x: (x.unsqueeze(1).squeeze(1), x[None, :, None], x.view(1, *x.shape).squeeze()),
    "softmax": lambda x: (x.softmax(-1), x.softmax(0), x.log_softmax(1)),
    "layer-norm": lambda x: F.layer_norm(x, (4, 6), torch.full((4, 6), 0.5), torch.ones(4, 6), 1e-3),
    "layer-norm-of-halves": lambda x: F.layer_norm(x.half(), (6,), torch.ones(6).half()).float(),
    "group-and-batch-norm": lambda x: (F.group_norm(x, 2), F.batch_norm(x, torch.zeros(4), torch.ones(4))),
    "parts": lambda x: (*x.chunk(3, -1), *x.split([1, 3], 1), *x.tensor_split(2, 2)),
    "parts-of-a-size": lambda x: x.flatten().view(2, -1).chunk(2, 1)[0],
    "pads": lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 0, 1, 0), value=2.0), F.pad(x, (1, 1), mode="reflect")),
    "triangles": lambda x: (x.tril(), x.triu(1), x.triu(-1).tril(2)),
    "resized": lambda x: (F.interpolate(x[None], scale_factor=2.0), F.interpolate(x[None], size=(5, 7), mode="bilinear")),
    "activations": lambda x: (F.hardswish(x), F.mish(x), F.gelu(x), F.silu(x), F.relu6(x), F.elu(x), F.softplus(x)),
    "comparisons": lambda x: (x >= 0, x <= 0.5, (x >= x.flip(0)) & (x != 0), torch.where(x > 0, x >= 1, x < -1)),
    "integers": lambda x: ((10 * x).int() // 3, (10 * x).long().clamp(-2, 3), torch.maximum(x.long(), x.flip(0).long()), F.relu(x.long())),
    "dtypes-without-a-kernel": lambda x: (torch.where(x > 0, x < 1, x < -1), F.pad(x.short(), (1, 2)), x.short().amax(0)),
    "powers": lambda x: (x.abs() ** 2.5, x**2, x.long() ** 2, 2.0**x),
    "places": lambda x: (x.cumsum(1), x.topk(2, -1), x.sort(-1), x.gather(2, x.argsort(-1)), x.argmax(1)),
    "sizes": lambda x: (x * x.shape[0], x.reshape(x.shape[0], -1), x[: x.shape[0] // 2], torch.arange(x.shape[0]), x.new_ones(x.shape)),
    "branch": lambda x: torch.cond(x.sum() > 0, lambda x: x.mean(1), lambda x: x.softmax(0).amax(1), (x,)),
}


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name: str, opset: int, tmp_path: pathlib.Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return FUNCTIONS[name](x)

    model, path = Model(), tmp_path / "model.onnx"
    program = onnxplain.export(model, (torch.randn(2, 4, 6),), path, dynamic_shapes=({0: Dim.DYNAMIC},), opset_version=opset)
    saved = onnx.load(path)
    assert [(each.domain, each.version) for each in saved.opset_import] == [("", opset)]
    assert saved.ir_version <= 8
    onnx.checker.check_model(saved, full_check=True)
    for x in (torch.randn(2, 4, 6), torch.randn(5, 4, 6)):
        expected = torch.utils._pytree.tree_leaves(model(x))
        torch.testing.assert_close(
            list(program(x)), expected, rtol=2e-3 if "halves" in name else 1e-4, atol=1e-3 if "halves" in name else 1e-5
        )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_zoo(case: Case) -> None:
    pytest.importorskip(case.needs, exc_type=ImportError)
    built = case.build()
    program = onnxplain.export(built.model, built.args, kwargs=dict(built.kwargs), dynamic_shapes=dict(case.dynamic), opset_version=11)
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    for inputs in (built.other, built.resized[-1]):
        feeds = {given.name: tensor.numpy() for given, tensor in zip(session.get_inputs(), inputs.tensors, strict=True)}
        results = [torch.from_numpy(each) for each in session.run(None, feeds)]
        torch.testing.assert_close(results, inputs.outputs_of(built.model), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("function", "asked", "needed"),
    [
        (lambda x: torch.fft.rfft(x).abs(), 13, 17),
        (lambda x: F.grid_sample(x[None], x[None, :, :2, :2]), 15, 16),
        (lambda x: x.long() & 3, 17, 18),
        (lambda x: torch.einsum("abc,abd->acd", x, x), 11, 12),
        (lambda x: x.scatter_reduce(0, torch.zeros(2, 4, 6, dtype=torch.long), x, "sum"), 12, 16),
        (lambda x: x + 1, 10, 11),
        (lambda x: x + 1, 1, 11),
    ],
)
def test_what_an_opset_cannot_say(function: Callable[[torch.Tensor], Any], asked: int, needed: int) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Model(), (torch.randn(2, 4, 6),), opset_version=asked)
    found = [dict(zip(each.rule.arguments(), each.rule.argument_texts(), strict=True)) for each in failed.value.findings]
    assert {each.rule.id for each in failed.value.findings} == {"OXP3003"}
    assert max(int(each["needed"]) for each in found) == needed
    onnxplain.export(Model(), (torch.randn(2, 4, 6),), opset_version=needed)
