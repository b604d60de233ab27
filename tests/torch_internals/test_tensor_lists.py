"""Tensors that a model makes of lists of tensors and sizes, and sizes that tensors hold: exported as they are in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import onnxplain

FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "numbers": lambda x, n: x.sum() / torch.tensor([n[0], n[1]]),
    "numbers and a number": lambda x, n: torch.tensor([n[0], 2, 1.5]) * x.sum(),
    "numbers in double": lambda x, n: torch.tensor([n[0], x.double().sum()]),
    "numbers as floats": lambda x, n: torch.tensor([n[0], n[1]], dtype=torch.float32),
    "truths": lambda x, n: torch.tensor([n[0] > 3, True]),
    "with a size": lambda x, n: torch.tensor([n[0], x.shape[0], 3]),
    "with a fraction of a size": lambda x, n: torch.tensor([x.shape[0] / 2, n[0]]),
    "nested": lambda x, n: torch.tensor([[n[0], n[1]], (x.shape[0], 1)]),
    "without a copy": lambda x, n: torch.as_tensor([n[0], n[1]], dtype=torch.float32) + x.sum(),
    "like another": lambda x, n: x.new_tensor([n[0], n[1]]),
    "of parts": lambda x, n: torch.stack([torch.tensor([size, 1]) for size in n]),
    "beside a size from data": lambda x, n: torch.arange(n[0]).sum() * torch.tensor([n[0], n[1]]),
    "steps": lambda x, n: torch.linspace(0, n[0] - 1, n[0]),
    "steps of powers": lambda x, n: torch.logspace(0, 1, n[1], base=2.0),
    "classes": lambda x, n: torch.nn.functional.one_hot(x.argmax(1), n[0] + 9).sum(0),
    "rest of a shape": lambda x, n: x.repeat(n[0], n[1]).reshape(n[0] * x.shape[0], -1),
    "rest of a view": lambda x, n: torch.arange(n[0] * n[1]).view(-1, n[1]),
    "rest of a shape of numbers": lambda x, n: torch.ones(n[0].item(), n[1].item(), 2).reshape((n[0].item() * n[1].item(), -1)),
}


class Calls(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, n: Tensor) -> Any:
        return self.function(x, n) + 0 * (x.sum() + n.sum()).to(torch.int64)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_eager(name: str) -> None:
    model = Calls(FUNCTIONS[name])
    program = onnxplain.export(model, (torch.rand(2, 3), torch.tensor([4, 5])), dynamic_shapes={"x": {0: "rows"}, "n": None})
    assert {finding.rule.id for finding in program.diagnostics.findings} <= {"OXP1023", "OXP1040"}
    for rows, sizes in (2, [4, 5]), (5, [2, 7]), (1, [6, 1]):
        x, n = torch.rand(rows, 3), torch.tensor(sizes)
        wanted = model(x, n)
        torch.testing.assert_close(program(x, n)[0], wanted, rtol=1e-4, atol=1e-4)
        assert program(x, n)[0].dtype == wanted.dtype


@pytest.mark.parametrize("data", [[], [[1, 2], [3, 4]], 2.5])
def test_constants_stay_constants(data: Any) -> None:
    model, x, n = Calls(lambda x, n: torch.tensor(data)), torch.rand(2, 3), torch.tensor([4, 5])
    torch.testing.assert_close(onnxplain.export(model, (x, n))(x, n)[0], model(x, n))
