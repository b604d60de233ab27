"""The clean-up of the ONNX graph: fewer nodes, the same numbers, and no copies of weights."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import onnxplain


def export(model: Callable[..., Any], *args: torch.Tensor, **options: Any) -> onnxplain.ONNXProgram:
    program = onnxplain.export(model, args, **options)
    expected = torch.utils._pytree.tree_leaves(model(*args))
    for got, want in zip(program(*args), expected, strict=True):
        torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-4)
    return program


def operators(program: onnxplain.ONNXProgram) -> Counter[str]:
    return Counter(node.op_type for node in program.model.graph.all_nodes())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(200, 16)
        self.head = nn.Linear(16, 200, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(ids))  # type: ignore[no-any-return]


def test_tied_weights_are_written_once(tmp_path: pathlib.Path) -> None:
    program = export(Tied(), torch.tensor([[1, 2, 3]]))
    program.save(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size < 1.2 * 200 * 16 * 4


def test_weights_are_the_models_own_memory() -> None:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    x = torch.randn(2, 3, 64)
    program = export(model, x)
    assert operators(program) == {"MatMul": 2, "Add": 2, "Relu": 1}
    own = {parameter.data_ptr() for parameter in model.parameters()}
    held = [value.const_value for value in program.model.graph.initializers.values() if value.const_value is not None]
    assert {tensor.raw.data_ptr() for tensor in held if tensor.size > 64} <= own  # type: ignore[attr-defined]


def test_weights_without_data_are_not_touched() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(64, 128), nn.LSTM(128, 16))
    program = onnxplain.export(model, (torch.empty(2, 3, 64, device="meta"),))
    assert "Transpose" not in Counter(node.op_type for node in program.model.graph if node.inputs[0] is None)
    assert operators(program)["MatMul"] == 1


@pytest.mark.parametrize(("opset", "expected"), [(20, "Gelu"), (18, "Erf")])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(opset: int, expected: str, approximate: str) -> None:
    program = export(nn.GELU(approximate), torch.randn(8), opset_version=opset)
    assert operators(program)[expected if approximate == "none" or opset == 20 else "Tanh"] == 1


def test_chains_become_one() -> None:
    program = export(lambda x: x.abs().reshape(2, 12).reshape(4, 6).unsqueeze(0).view(24), torch.randn(3, 8))
    assert operators(program) == {"Abs": 1, "Reshape": 1}
    program = export(lambda x: x.abs().transpose(0, 1).permute(2, 1, 0), torch.randn(2, 3, 4))
    assert operators(program) == {"Abs": 1, "Transpose": 1}
    program = export(lambda x: x.abs()[:, None].unsqueeze(-1).unsqueeze(0), torch.randn(2, 3))
    assert operators(program) == {"Abs": 1, "Unsqueeze": 1}
    program = export(lambda x: x.abs().reshape(2, -1).sin(), torch.randn(2, 3))
    assert operators(program) == {"Abs": 1, "Sin": 1}
    program = export(lambda x: x.abs().t().t() * 1 + 0, torch.randn(2, 3))
    assert operators(program) == {"Abs": 1}


def test_masks_are_constants() -> None:
    def causal(x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.size(0))
        return x.masked_fill(positions[None, :] > positions[:, None], 0.0)

    assert operators(export(causal, torch.randn(5, 5))) == {"Where": 1}


def test_equal_subexpressions_are_computed_once() -> None:
    assert operators(export(lambda x: x.sin() * x.sin() + x.sin(), torch.randn(3))) == {"Sin": 1, "Mul": 1, "Add": 1}


def test_two_draws_stay_two() -> None:
    def noise(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5, training=True) + torch.nn.functional.dropout(x, 0.5, training=True)

    assert operators(onnxplain.export(noise, (torch.randn(100),)))["RandomUniformLike"] == 2


def test_weights_that_were_rearranged_are_left_out() -> None:
    program = export(nn.Linear(4, 5), torch.randn(2, 3, 4))
    weights = program.model.graph.initializers
    assert sorted(tuple(value.shape or ()) for value in weights.values()) == [(4, 5), (5,)]
    assert all(value.uses() for value in weights.values())


@pytest.mark.parametrize(
    ("pad", "mode", "left"),
    [
        pytest.param((1, 2, 0, 3), "constant", {"Conv": 1}, id="zeros"),
        pytest.param((0, 0, 0, 0, 0, 2), "constant", {"Pad": 1, "Conv": 1}, id="channels"),
        pytest.param((-1, 1), "constant", {"Pad": 1, "Conv": 1}, id="cut"),
        pytest.param((1, 1, 1, 1), "reflect", {"Pad": 1, "Conv": 1}, id="reflected"),
    ],
)
def test_a_convolution_pads_itself(pad: tuple[int, ...], mode: str, left: dict[str, int]) -> None:
    conv = nn.Conv2d(5 if len(pad) == 6 else 3, 4, 3, padding=(0, 1))

    def function(x: torch.Tensor) -> torch.Tensor:
        return conv(nn.functional.pad(x, pad, mode))  # type: ignore[no-any-return]

    assert operators(export(function, torch.randn(2, 3, 6, 7))) == left
