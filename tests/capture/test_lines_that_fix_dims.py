"""A failed export lists every line that fixes a dim, and no line that only follows from another one."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import IS_3_11, needs_columns
from torch.export import Dim

import onnxplain

MODELS = """
    import torch

    class Views(torch.nn.Module):
        def forward(self, x):
            a = x.view(5, 4)  # Views
            b = x.view(5, 4).sum()  # Views
            return a + b + torch.zeros(5, 4) + x  # Views

    class Helper(torch.nn.Module):
        def forward(self, x):
            return parts(x) + parts(x * 2) + doubled(x)

    def parts(x):
        return x.view(5, 2, 2).sum((1, 2))  # Helper

    def doubled(x):
        if x.shape[0] != 5:  # Helper
            return x.sum(1)
        return x.sum(1) * 2

    class Numbers(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] == 5:  # Numbers
                x = x + 1
            weights = torch.tensor([i * 0.5 for i in range(x.shape[0])])  # Numbers
            return x * weights[:, None]

    class Between(torch.nn.Module):
        def forward(self, x):
            a = x.view(5, 4)  # Between
            if x.shape[0] == 5:  # Between
                a = a + 1
            return a * torch.tensor([i * 0.5 for i in range(x.shape[0])])[:, None]  # Between

    class Following(torch.nn.Module):
        def forward(self, x):
            weights = torch.tensor([i * 0.5 for i in range(x.shape[0])])  # Following
            x = x * weights[:, None]
            count = len(weights)
            if x.shape[0] == count:
                x = x.view(count, 4)
            return x

    class Loop(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] == 5:  # Loop
                x = x + 1
            rows = []
            for i in range(x.shape[0]):
                rows.append(x[i] * 2)
            return torch.stack(rows)

    class Conversion(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] == 5:  # Conversion
                x = x + 1
            return x * int(x.shape[0])

    class Larger(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] == 5:  # Larger
                x = x + 1
            if x.shape[0] > 4:
                x = x + 2
            return x[:, :5]

    class Two(torch.nn.Module):
        def forward(self, x, y):
            a = x.view(5, 4) + y.view(5, 4)  # Two
            return a, x.reshape(5, 4), y.reshape(5, 4) * 5  # Two

    class Product(torch.nn.Module):
        def forward(self, x):
            y = x.view(8) + torch.zeros(8)  # Product
            if x.shape[0] == 2:  # Product
                y = y + 1
            if x.shape[1] == 4:  # Product
                y = y + 1
            return y

    class Limited(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] == 5:  # Limited
                x = x + 1
            if x.shape[1] > 3:  # Limited
                x = x * 2
            return x
"""


def lines(failed: onnxplain.ExportFailed) -> list[int | None]:
    return [finding.location and finding.location.line for finding in failed.log.findings if finding.rule.id == "OXP1003"]


@pytest.mark.parametrize("form", [{0: Dim("rows", min=2, max=64)}, {0: "rows"}], ids=["Dim", "name"])
@pytest.mark.parametrize("name", ["Views", "Helper", "Numbers", "Between", "Following", "Loop", "Conversion", "Larger"])
def test_every_line_is_told(name: str, form: Any, load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    if name == "Following" and not IS_3_11:
        pytest.skip("Python 3.10 does not tell which part of a line runs")
    module = load(MODELS)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(getattr(module, name)(), (torch.randn(5, 4),), dynamic_shapes=(form,))
    assert lines(failed.value) == marked(name)


@needs_columns
def test_of_several_dims(load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    module = load(MODELS)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Two(), (torch.randn(5, 4), torch.randn(5, 4)), dynamic_shapes=({0: "rows"}, {0: "others"}))
    first, second = marked("Two")
    assert sorted((finding.rule.dim, line) for finding, line in zip(failed.value.log.findings, lines(failed.value), strict=True)) == [
        ("others", first),
        ("others", second),
        ("rows", first),
        ("rows", second),
    ]


def test_an_equation_of_dims_that_other_lines_fix_is_a_note(load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    module = load(MODELS)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Product(), (torch.randn(2, 4),), dynamic_shapes=({0: "rows", 1: "columns"},), try_fixes=False)
    equation, first, second = marked("Product")
    found = [(finding.rule.id, finding.location and finding.location.line) for finding in failed.value.log.findings]
    assert found == [("OXP1003", first), ("OXP1003", second), ("OXP1041", equation)]


def test_a_limit_of_a_dim_beside_one_that_is_fixed(load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    module = load(MODELS)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Limited(), (torch.randn(5, 4),), dynamic_shapes=({0: Dim("rows"), 1: Dim("columns")},))
    fixed, limited = failed.value.log.findings
    assert (fixed.rule.id, limited.rule.id, limited.rule.constraint) == ("OXP1003", "OXP1011", "columns >= 4")  # type: ignore[attr-defined]
    assert [finding.location and finding.location.line for finding in (fixed, limited)] == marked("Limited")


def test_without_trials(load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    module = load(MODELS)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Numbers(), (torch.randn(5, 4),), dynamic_shapes=({0: "rows"},), try_fixes=False)
    assert lines(failed.value) == marked("Numbers")
