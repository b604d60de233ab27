"""`fill_diagonal_`: the exported model computes what eager PyTorch does, for all sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.export import Dim

import onnxplain


def rows(x: torch.Tensor) -> torch.Tensor:
    return (x * 1).fill_diagonal_(3.5)


def similarities(x: torch.Tensor) -> torch.Tensor:
    scores = x @ x.t()
    scores.fill_diagonal_(-9e15)
    return scores.softmax(-1)


def cube(x: torch.Tensor) -> torch.Tensor:
    made = x.new_zeros(3, 3, 3)
    made.fill_diagonal_(2)
    return made + x.sum()


def part(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    y.t()[1:].fill_diagonal_(0)
    return y


def mask(x: torch.Tensor) -> torch.Tensor:
    return (x > 0).fill_diagonal_(True)


@pytest.mark.parametrize("function", [rows, similarities, cube, part, mask])
def test_equals_eager(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x)

    program = onnxplain.export(Net(), (torch.randn(5, 4),), dynamic_shapes={"x": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}})
    assert program.diagnostics.findings == ()
    for shape in ((5, 4), (4, 6), (1, 3)):
        x = torch.randn(*shape)
        torch.testing.assert_close(program(x)[0], Net()(x))


@pytest.mark.parametrize("shape", [(3, 4), (7, 3)])
def test_a_diagonal_that_begins_anew(shape: tuple[int, int]) -> None:
    """Below the square of a matrix with more rows than columns."""

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * 1).fill_diagonal_(2, wrap=True)

    x = torch.randn(*shape)
    torch.testing.assert_close(onnxplain.export(Net(), (x,))(x)[0], Net()(x))
