"""Models with a way of their own for multiples or a certain size: where the way for all others is right for these, no dim is limited."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import onnxplain
from onnxplain.diagnostics import Level
from onnxplain.testing import assert_exports

Load = Callable[..., ModuleType]
LENGTH = torch.export.Dim("length")


class Padded(torch.nn.Module):
    """Pads to a multiple of 8, with a mask; both ways set all three variables."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        missing = -len(x) % 8
        if missing > 0:
            padded = torch.cat([x, x[-1:].repeat(missing, 1)])
            mask = torch.cat([torch.zeros(len(x)), torch.ones(missing)])
        else:
            padded, mask = x, torch.zeros(len(x))
        return padded.view(-1, 8, x.shape[1]).sum(1), mask


class Table(torch.nn.Module):
    """Resizes its table for all sizes but 8."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.rand(1, 4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = self.table
        if x.shape[-1] != 8:
            table = F.interpolate(table, size=x.shape[-1], mode="linear")
        return x + table


class Image(torch.nn.Module):
    """Pads the tokens of an image, of patches of 2 by 2, to a multiple of 16, and remembers a table that it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.outer(torch.arange(64.0), torch.ones(4))
        height, width = x.shape[-2] // 2, x.shape[-1] // 2
        tokens = x.view(height, 2, width, 2).transpose(1, 2).reshape(height * width, 4)
        missing = -len(tokens) % 16
        if missing:
            padded = torch.cat([tokens, tokens[-1:].repeat(missing, 1)])
            places = torch.cat([torch.arange(len(tokens)), torch.zeros(missing, dtype=torch.int64)])
        else:
            padded, places = tokens, torch.arange(len(tokens))
        return (padded + self.table[places % 64]).view(-1, 16, 4).mean(1)


def warnings(program: onnxplain.ONNXProgram) -> list[tuple[str, int | None]]:
    """The rules of the warnings, with their lines."""
    found = [finding for finding in program.diagnostics.findings if finding.level is Level.WARNING]
    return [(finding.rule.id, finding.location.line if finding.location else None) for finding in found]


class Windows(torch.nn.Module):
    """Has a mask for the size of an image with even sides, and computes it for others."""

    def __init__(self) -> None:
        super().__init__()
        self.size = (4, 4)
        self.mask = self.computed((4, 4))

    def computed(self, size: tuple[int, int]) -> torch.Tensor:
        return torch.arange(size[0] * size[1]).view(size) % 5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, (0, -x.shape[1] % 2, 0, -x.shape[0] % 2))
        size = (x.shape[0], x.shape[1])
        return x * self.mask if self.size == size else x * self.computed(size)


class Differs(Windows):
    """Computes something else for other heights."""

    def computed(self, size: tuple[int, int]) -> torch.Tensor:
        return super().computed(size) + (2 if size[0] != 4 else 0)


@pytest.mark.parametrize("sizes", [(4, 6), (6, 4), (6, 6)], ids=["height", "width", "neither"])
def test_two_sizes_together(sizes: tuple[int, int]) -> None:
    model = Windows()
    program = assert_exports(model, (torch.rand(sizes),), dynamic_shapes=({0: "height", 1: "width"},))
    assert program.diagnostics.findings == ()
    for other in ((4, 4), (4, 6), (6, 4), (7, 9), (3, 4)):
        x = torch.rand(other)
        torch.testing.assert_close(program(x)[0], model(x))


def test_two_sizes_of_which_one_decides_more() -> None:
    program = onnxplain.export(Differs(), (torch.rand(4, 6),), dynamic_shapes=({0: "height", 1: "width"},))
    assert {rule for rule, _ in warnings(program)} == {"OXP1011"}


@pytest.mark.parametrize("dim", [LENGTH, "length", torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO, torch.export.Dim("n", min=2, max=100)])
@pytest.mark.parametrize("length", [16, 20])
def test_padding_to_a_multiple(length: int, dim: Any) -> None:
    model = Padded()
    program = assert_exports(model, (torch.rand(length, 4),), dynamic_shapes=({0: dim},))
    assert program.diagnostics.findings == ()
    for other in (16, 20, 7, 8, 9, 31, 40):
        x = torch.rand(other, 4)
        torch.testing.assert_close(tuple(program(x)), model(x))


SCALED = """
    import torch


    class Scaled(torch.nn.Module):
        def forward(self, x):
            missing = -len(x) % 8
            if missing > 0:  # HERE
                return torch.cat([x, x[-1:].repeat(missing, 1)]) * 2
            return x
"""


@pytest.mark.parametrize("length", [16, 20])
def test_a_way_that_is_not_right_for_multiples(length: int, load: Load, marked: Callable[[str], list[int]]) -> None:
    program = onnxplain.export(load(SCALED).Scaled(), (torch.rand(length, 4),), dynamic_shapes=({0: LENGTH},))
    assert warnings(program) == [("OXP1011", *marked("HERE"))]


def test_a_model_that_must_not_run() -> None:
    program = onnxplain.export(Padded(), (torch.rand(20, 4),), dynamic_shapes=({0: LENGTH},), try_fixes=False)
    assert [rule for rule, _ in warnings(program)] == ["OXP1011"]


@pytest.mark.parametrize("length", [6, 12])
def test_a_certain_size(length: int) -> None:
    model = Table()
    program = assert_exports(model, (torch.rand(2, 4, length),), dynamic_shapes=({2: LENGTH},))
    assert program.diagnostics.findings == ()
    for other in (4, 8, 12, 17):
        x = torch.rand(2, 4, other)
        torch.testing.assert_close(program(x)[0], model(x))


def test_a_multiple_of_a_product_of_dims() -> None:
    model = Image()
    height, width = torch.export.Dim("height", max=16), torch.export.Dim("width", max=16)
    program = assert_exports(model, (torch.rand(8, 8),), dynamic_shapes=({0: 2 * height, 1: 2 * width},))
    assert [rule for rule, _ in warnings(program)] == ["OXP1018"]
    for sizes in ((8, 8), (6, 10), (2, 2), (16, 4), (12, 14)):
        x = torch.rand(sizes)
        torch.testing.assert_close(program(x)[0], model(x))
