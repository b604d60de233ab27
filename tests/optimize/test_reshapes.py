"""Reshapes of tensors that may be empty, at sizes for which ONNX Runtime would divide by zero."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch.nn import functional

import onnxplain

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shuffled": lambda x: functional.channel_shuffle(x, 2),
    "flat": lambda x: x.transpose(1, 2).flatten(2),
    "folded": lambda x: functional.unfold(x, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axes", [(0,), (0, 2), (0, 2, 3)])
def test_of_a_part_that_may_be_empty(name: str, axes: tuple[int, ...]) -> None:
    def part(x: torch.Tensor) -> torch.Tensor:
        return FUNCTIONS[name](x[1:])

    program = onnxplain.export(part, (torch.randn(3, 4, 4, 6),), dynamic_shapes=({axis: f"n{axis}" for axis in axes},))
    evaluator = ReferenceEvaluator(program.model_proto)
    for size in (1, 2, 6):
        sizes = [size if axis == 0 else 8 if axis in axes else given for axis, given in enumerate((3, 4, 4, 6))]
        x = torch.randn(*sizes)
        torch.testing.assert_close(program(x)[0], part(x))
        # NOTE: ONNX allows no -1 beside a size of 0, whatever ONNX Runtime makes of it.
        (result,) = evaluator.run(None, {program.model.graph.inputs[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(result), part(x))
