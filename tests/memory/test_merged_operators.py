"""The operators of the estimate are those that ONNX Runtime runs, which merges some nodes to one."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional

import onnxplain
from onnxplain.memory import bound, estimate

X, Y, SQUARE, MATRIX = torch.randn(2, 4, 6), torch.randn(2, 4, 6), torch.randn(2, 4, 4), torch.randn(4, 6)


class With(nn.Module):
    """A function of a module's weights and of its inputs."""

    def __init__(self, function: Callable[..., torch.Tensor], **weights: torch.Tensor) -> None:
        super().__init__()
        self._function = function
        for name, weight in weights.items():
            self.register_buffer(name, weight)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self._function(self, *inputs)


def _weighted(weight: tuple[int, ...], bias: tuple[int, ...]) -> With:
    return With(lambda it, x: (x @ it.weight + it.bias).exp(), weight=torch.randn(weight), bias=torch.randn(bias))


NORM, CONVOLUTION, WIDER = nn.LayerNorm(6), nn.Conv2d(16, 16, 3), nn.Conv2d(16, 32, 3)
IMAGES = torch.randn(1, 16, 6, 6)
MODELS: dict[str, tuple[Any, tuple[torch.Tensor, ...], Any]] = {
    "a transposed factor": (lambda x, y: (x @ y.transpose(1, 2)).exp(), (X, Y), None),
    "a transposed factor of four dims": (lambda x, y: (x[None] @ y[None].mT).exp(), (X, Y), None),
    "both factors, scaled": (lambda x, y: (x.mT @ y.mT * 0.5).exp(), (SQUARE, SQUARE), None),
    "scaled factors": (lambda x, y: ((x * 0.5) @ (y / 3)).exp(), (SQUARE, SQUARE), None),
    "a factor times a row": (With(lambda it, x, y: ((x * it.row) @ y).exp(), row=torch.randn(4)), (SQUARE, SQUARE), None),
    "a transposed factor that is read again": (lambda x, y: (x @ y.mT).exp().sum() + y.mT.exp(), (X, Y), None),
    "a linear layer": (_weighted((6, 5), (5,)), (MATRIX,), None),
    "a linear layer of three dims": (_weighted((6, 5), (5,)), (X,), None),
    "a linear layer of three dynamic dims": (_weighted((6, 5), (5,)), (X,), ({0: "n"},)),
    "a linear layer of a dynamic batch": (_weighted((6, 5), (5,)), (MATRIX,), ({0: "n"},)),
    "a bias of two dims": (_weighted((6, 5), (1, 5)), (MATRIX,), None),
    "a bias of a column": (_weighted((6, 5), (4, 1)), (MATRIX,), None),
    "a bias of two dims for three": (_weighted((6, 5), (4, 5)), (X,), None),
    "a bias that makes the result larger": (_weighted((6, 5), (3, 4, 5)), (MATRIX,), None),
    "a sum with an input": (lambda x, y: (x @ x.mT + y).exp(), (MATRIX, torch.randn(4, 4)), None),
    "a weight on the left": (
        With(lambda it, x: (it.weight @ x + it.bias).exp(), weight=torch.randn(4, 4), bias=torch.randn(6)),
        (MATRIX,),
        None,
    ),
    "a normalized sum": (lambda x, y: NORM(x + y).exp(), (X, Y), None),
    "a normalized sum that is read again": (lambda x, y: (NORM(x + y) + (x + y)).exp(), (X, Y), None),
    "an activation": (nn.Sequential(nn.Linear(6, 5), nn.GELU()), (X,), None),
    "a bias before an activation": (With(lambda it, x: functional.gelu(x + it.bias), bias=torch.randn(6)), (X,), None),
    "a convolution of a transposed image": (lambda x: CONVOLUTION(x.permute(0, 3, 1, 2)), (torch.randn(1, 6, 6, 16),), None),
    "a convolution behind what reads one": (lambda x: CONVOLUTION(x.permute(0, 3, 1, 2).exp()), (torch.randn(1, 6, 6, 16),), None),
    "images beside each other": (lambda x: CONVOLUTION(torch.cat([CONVOLUTION(x), CONVOLUTION(x + 1)], 2)), (IMAGES,), None),
    "channels of two images": (lambda x: torch.cat([CONVOLUTION(x), WIDER(x)], 1).exp(), (IMAGES,), None),
    "an image of few channels": (nn.Conv2d(3, 16, 3), (torch.randn(1, 3, 6, 6),), None),
    "a convolution of each channel": (nn.Conv2d(16, 16, 3, groups=16), (IMAGES,), None),
    "a gated activation": (lambda x: functional.silu(x.exp()), (X,), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_operators_are_those_of_onnx_runtime(name: str, tmp_path: pathlib.Path) -> None:
    model, args, shapes = MODELS[name]
    program = onnxplain.export(model, args, tmp_path / "model.onnx", dynamic_shapes=shapes)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(tmp_path / "optimized.onnx").graph.node
    # NOTE: what only gives a tensor another shape takes no memory. The estimate has a Reshape behind a Gemm, and none before it.
    behind = {node.output[0] for node in nodes if node.op_type == "Gemm"}
    run = [node.op_type for node in nodes if node.op_type != "Reshape" or node.input[0] in behind]
    names = [value.name for value in program.model.graph.inputs]
    found = estimate(program.model, bound(program.model, {each: arg.shape for each, arg in zip(names, args, strict=True)}))
    assert len(found.steps) == len(run), run


def test_a_transposed_convolution_takes_its_columns() -> None:
    program = onnxplain.export(nn.ConvTranspose2d(4, 3, 2), (torch.randn(1, 4, 5, 7),))
    found = estimate(program.model, {})
    result, columns = 3 * 6 * 8 * 4, 3 * 2 * 2 * 5 * 7 * 4
    assert found.peak == result + columns
