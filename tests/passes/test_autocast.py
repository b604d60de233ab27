"""Autocast, in the model and around the export: the exported model computes in the same dtypes as PyTorch."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import zoo
from torch import nn
from torch.nn import functional

import onnxplain

X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))


def region() -> Any:
    """Of float16, for which ONNX Runtime has kernels."""
    return torch.autocast("cpu", torch.float16)


class Scores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        with torch.autocast("cpu", enabled=False):
            scores = y.float() @ y.float().mT / 8
        return functional.softmax(scores, -1) @ y


LAYERS: dict[str, nn.Module] = {
    "linear": nn.Linear(8, 4),
    "LayerNorm": nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)),
    "LayerNorm without weights": nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, elementwise_affine=False)),
    "GroupNorm": nn.Sequential(nn.Conv1d(5, 4, 3), nn.GroupNorm(2, 4)),
    "RMSNorm": nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8)),
    "BatchNorm": nn.Sequential(nn.Conv1d(5, 3, 3), nn.BatchNorm1d(3)),
    "activations": nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.SiLU(), nn.Softmax(-1)),
    "encoder": nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    "a region without": Scores(),
}


class Inside(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        with region():
            return self.inner(x)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("around", [False, True])
def test_computes_in_the_same_dtypes(name: str, around: bool) -> None:
    torch.manual_seed(1)
    layer = LAYERS[name].eval()
    zoo.randomize(layer)
    model = layer if around else Inside(layer)
    with region() if around else contextlib.nullcontext():
        program = onnxplain.export(model, (X,), dynamic_shapes=({0: "n"},), verify=True)
        assert torch.is_autocast_enabled("cpu") is around
        for x in (X, torch.randn(3, 5, 8)):
            expected = model(x)
            torch.testing.assert_close(program(x)[0], expected.detach(), rtol=5e-3, atol=5e-3)
    assert [each for each in program.diagnostics.findings if each.level is onnxplain.Level.ERROR] == []


def test_both_ways_are_one_graph() -> None:
    layer = LAYERS["LayerNorm"].eval()
    inside = onnxplain.export(Inside(layer), (X,))
    with region():
        around = onnxplain.export(layer, (X,))
    assert [node.op_type for node in around.model.graph] == [node.op_type for node in inside.model.graph]


def test_of_another_device_changes_nothing() -> None:
    with torch.autocast("xpu", torch.float16):
        program = onnxplain.export(nn.Linear(8, 4), (X,))
    assert "Cast" not in [node.op_type for node in program.model.graph]
