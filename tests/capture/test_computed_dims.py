"""A `Dim` that is computed from another one is a promise: where the model computes the size in another way, that is told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxplain

D = Dim("d", min=2, max=50)


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x]) + y


class Shorter(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[1:] + y


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[: x.shape[0] // 2] + y


class Beside(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat([x, x]) + y, z


def told(model: torch.nn.Module, sizes: tuple[int, ...], dims: tuple[Any, ...]) -> dict[str, str]:
    example = tuple(torch.randn(size) for size in sizes)
    program = onnxplain.export(model, example, dynamic_shapes=tuple({0: dim} for dim in dims))
    found = {}
    for finding in program.diagnostics.findings:
        assert (finding.rule.id, finding.location and finding.location.line) == ("OXP1011", type(model).forward.__code__.co_firstlineno + 1)
        found[finding.rule.dim] = finding.rule.constraint  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    ("model", "sizes", "dims", "expected"),
    [
        (Twice(), (3, 6), (D, D + 3), {"d + 3": "2*d == d + 3"}),
        (Twice(), (3, 6), (D, 2 * D), {}),
        (Twice(), (3, 6), (D - 1, 2 * D - 2), {}),
        (Shorter(), (6, 5), (2 * D, D + 2), {"d + 2": "2*d - 1 == d + 2"}),
        (Shorter(), (6, 5), (2 * D, 2 * D - 1), {}),
        (Beside(), (3, 6, 4), (D - 1, D + 2, D), {"d + 2": "2*d - 2 == d + 2"}),
        (Beside(), (3, 6, 4), (D - 1, 2 * D - 2, D), {}),
    ],
)
def test_other_formulas_are_told(model: torch.nn.Module, sizes: tuple[int, ...], dims: tuple[Any, ...], expected: dict[str, str]) -> None:
    assert told(model, sizes, dims) == expected


@pytest.mark.parametrize("formula", [2 * D, D + 3])
def test_a_formula_of_an_open_dim_is_told_of_both_or_not(formula: Any) -> None:
    # NOTE: torch 2.11 knows that the half is the smaller one.
    assert {*told(Halves(), (12, 6), (Dim.DYNAMIC, formula))} <= {f"x.shape[0], {formula.__name__}"}


def test_the_formula_of_the_model_is_the_fix() -> None:
    program = onnxplain.export(Twice(), (torch.randn(3), torch.randn(6)), dynamic_shapes=({0: D}, {0: D + 3}))
    ((fix,),) = (finding.fixes for finding in program.diagnostics.findings)
    (edit,) = fix.edits
    (first, second) = (each[0] for each in eval(edit.replacement).values())
    assert (first.__name__, second.__name__) == ("d", "2*d")
