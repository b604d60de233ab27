"""Tests of data that only refuse do not stop a capture: the model goes on where they pass, and a note tells that they are left out."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import needs_columns

import onnxplain

Load = Callable[..., ModuleType]
Marked = Callable[[str], list[int]]

pytestmark = needs_columns

SOURCE = """
    import logging

    import torch


    def fails():
        raise ValueError


    class Net(torch.nn.Module):
        def forward(self, x, count):
            n = count.item()
            inside = (x >= -1) & (x <= 1)
            y = x[inside].abs()
            {}
            result = torch.zeros_like(x)
            result[inside] = y.sqrt()
            return result + n
"""
PASSED = {
    "assert": ("assert (y >= 0).all()  # HERE", "(y >= 0).all()"),
    "message": ("assert (y >= 0).all(), y  # HERE", "(y >= 0).all()"),
    "not": ("assert not (y < 0).any()  # HERE", "not (y < 0).any()"),
    "both": ("assert (y >= 0).all() and not y.isnan().any()  # HERE", "(y >= 0).all() and not y.isnan().any()"),
    "known": ("assert x.dim() == 2 and (y >= 0).all()  # HERE", "x.dim() == 2 and (y >= 0).all()"),
    "raise": ("if (y < 0).any():  # HERE\n                raise ValueError('negative')", "not ((y < 0).any())"),
    "or": (
        "if (y < 0).any() or y.isnan().any():  # HERE\n                raise ValueError",
        "not ((y < 0).any() or y.isnan().any())",
    ),
    "logged": (
        "if (y < 0).any():  # HERE\n                logging.warning('%s', y)\n                raise ValueError",
        "not ((y < 0).any())",
    ),
    "number": ("assert n > 1  # HERE", "n > 1"),
    "numbers": ("if not 1 < n < 9:  # HERE\n                raise ValueError", "not (not 1 < n < 9)"),
    "size": ("assert len(y) < 99  # HERE", "len(y) < 99"),
}
# What may go on in another way where the test fails, or tests of which one part alone need not pass.
TOLD = {
    "other way": "if (y < 0).any():  # HERE\n                y = y + 1",
    "else": "if (y < 0).any():  # HERE\n                raise ValueError\n            else:\n                y = y + 1",
    "caught": "try:\n                assert (y > 0).all()  # HERE\n            except AssertionError:\n                y = y + 1",
    "or": "assert (y > 0).all() or (y < 9).all()  # HERE",
    "and": "if (y < 0).any() and (y < 9).all():  # HERE\n                raise ValueError",
}


NON_STRICT: dict[str, Any] = {"strategies": ("non-strict",), "control_flow": "report"}


def export(load: Load, statements: str) -> tuple[torch.nn.Module, onnxplain.ONNXProgram]:
    model = load(SOURCE.format(statements)).Net()
    return model, onnxplain.export(model, (torch.randn(3, 4), torch.tensor(3)), dynamic_shapes=({0: "rows"}, {}), **NON_STRICT)


@pytest.mark.parametrize("name", PASSED)
def test_the_model_goes_on(name: str, load: Load, marked: Marked) -> None:
    statements, check = PASSED[name]
    model, program = export(load, statements)
    told = {(each.rule.id, vars(each.rule)["check"], each.location.line if each.location else 0) for each in program.diagnostics.findings}
    assert told == {("OXP1038", check, *marked("HERE"))}
    for rows in (3, 5):
        given = torch.randn(rows, 4), torch.tensor(4)
        torch.testing.assert_close(program(*given)[0], model(*given))


@pytest.mark.parametrize("name", TOLD)
def test_other_tests_are_told(name: str, load: Load, marked: Marked) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        export(load, TOLD[name])
    first = next(finding for finding in failed.value.findings if finding.fails)
    assert (first.rule.id, first.location.line) == ("OXP1001", *marked("HERE"))


def test_a_refusal_that_a_caller_catches(load: Load) -> None:
    source = SOURCE.format("assert (y >= 0).all()") + CATCHING
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(source).Catching(), (torch.randn(3, 4), torch.tensor(3)), **NON_STRICT)
    assert {finding.rule.id for finding in failed.value.findings if finding.fails} <= {"OXP1001", "OXP1002"}


CATCHING = """

    class Catching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, x, count):
            try:
                return self.net(x, count)
            except AssertionError:
                return x
"""


def test_a_caller_of_the_export_may_catch_anything(load: Load) -> None:
    try:
        _, program = export(load, "assert (y >= 0).all()")
    except AssertionError:
        pytest.fail("The export asserts.")
    assert [finding.rule.id for finding in program.diagnostics.findings] == ["OXP1038"]


def test_a_check_of_torch_is_left_out() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.distributions.Normal(x, x.abs() + 1, validate_args=True).stddev

    program = onnxplain.export(Scaled(), (torch.randn(3),))
    assert {finding.rule.id for finding in program.diagnostics.findings} <= {"OXP1023"}
    x = torch.randn(3)
    torch.testing.assert_close(program(x)[0], Scaled()(x))


class FillsPlaces(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        if x[mask].numel() != values.numel():
            raise ValueError
        return x.masked_scatter(mask, values)


def test_a_number_of_places_that_fits_a_dynamic_size() -> None:
    """As for the places of images in a text, of which there must be as many as features."""

    def inputs(length: int, places: list[int]) -> tuple[torch.Tensor, ...]:
        mask = torch.zeros(1, length, 8, dtype=torch.bool)
        mask[:, places] = True
        return torch.randn(1, length, 8), mask, torch.randn(len(places), 8)

    program = onnxplain.export(FillsPlaces(), inputs(5, [0, 1]), dynamic_shapes=({1: "s"}, {1: "s"}, {0: "n"}))
    assert [finding.rule.id for finding in program.diagnostics.findings] == ["OXP1038"]
    others = inputs(7, [2, 3, 5])
    torch.testing.assert_close(program(*others)[0], FillsPlaces()(*others))
