"""A few integers of an input that alone decide Python's numbers: the finding says how the model holds them, and that this exports."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Confidence, Fix

Load = Callable[..., ModuleType]

SOURCE = """
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x, grid=None, extra=None, **others):
            {}


    class Patches(Net):
        def forward(self, x, grid):
            ends = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0]).cumsum(0)
            starts = torch.nn.functional.pad(ends, (1, 0))
            parts = torch.split(self.linear(x), (starts[1:] - starts[:-1]).tolist())  # HERE
            return torch.cat([part - part.mean(0) for part in parts])
"""


def held(failed: onnxplain.ExportFailed) -> list[Fix]:
    return [fix for finding in failed.findings if finding.fails for fix in finding.fixes if "functools.partial" in fix.snippet]


def test_a_model_that_holds_them_is_exported(load: Load, marked: Callable[[str], list[int]]) -> None:
    model, x, grid = load(SOURCE.format("return x")).Patches(), torch.rand(14, 4), torch.tensor([[2, 2, 2], [1, 2, 3]])
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (x, grid))
    assert [(finding.rule.id, finding.location.line) for finding in failed.value.findings if finding.fails] == [
        ("OXP1002", *marked("HERE"))
    ]
    (fix,) = held(failed.value)
    assert fix.confidence is Confidence.GUESS
    names: dict[str, Any] = {"functools": functools, "model": model, "grid": grid}
    exec(fix.snippet, names)
    program = onnxplain.export(names["model"], (x,))
    assert program.diagnostics.findings == ()
    other = torch.rand(14, 4)
    torch.testing.assert_close(program(other)[0], model(other, grid))


NUMBERS = torch.tensor([2, 3])
CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "one of two": ("return self.linear(x) * [1, 2, 3][grid[0]]", {"grid": NUMBERS, "extra": NUMBERS}, ["grid=grid"]),
    "both": ("return x * [1, 2, 3, 4, 5, 6][grid[0] + extra[1]]", {"grid": NUMBERS, "extra": NUMBERS}, ["grid=grid, extra=extra"]),
    "in the order of the call": ("return x * [1, 2, 3][grid[0]]", {"extra": None, "grid": NUMBERS}, ["grid=grid"]),
    "of keywords": ("return x * [1, 2, 3][others['size'][0]]", {"size": NUMBERS, "other": NUMBERS}, ["size=size"]),
    "in a dict": ("return x * [1, 2, 3][grid['size'][0]]", {"grid": {"size": NUMBERS}}, []),
    "data too": ("return x * [1, 2, 3][(grid[0] * (x.sum() > 0)).long()]", {"grid": NUMBERS}, []),
    "a weight too": ("return x * [1, 2, 3][(grid[0] * (self.linear.weight.sum() > 99)).long()]", {"grid": NUMBERS}, ["grid=grid"]),
    "many": ("return x * [1, 2, 3][grid[0]]", {"grid": NUMBERS.repeat(40)}, []),
    "no integers": ("return x * [1, 2, 3][grid[0].long()]", {"grid": NUMBERS * 0.5}, []),
    "a branch": ("return x * 2 if grid[0] > 1 else x.relu() if grid[1] > 1 else x", {"grid": NUMBERS}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_who_holds_what(name: str, load: Load) -> None:
    body, kwargs, given = CASES[name]
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(SOURCE.format(body)).Net(), (torch.rand(3, 4),), kwargs=kwargs)
    assert [fix.snippet for fix in held(failed.value)] == [f"model = functools.partial(model, {each})" for each in given]
