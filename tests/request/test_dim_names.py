"""Sizes are written in the names that the user gave to dims."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

from onnxplain.request import DimNames, DynamicShapes

X, Y = torch.ones(4, 6), torch.ones(4, 6)


class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat([x, x]) * scale, y * scale


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y * 2 + x.sum()


def named(given: Any, model: torch.nn.Module, args: tuple[Any, ...]) -> tuple[DimNames, list[list[Any]]]:
    """The names, and the sizes of the inputs and outputs in these names."""
    shapes = DynamicShapes.parse(given, model, args, {})
    program = torch.export.export(model, args, dynamic_shapes=shapes.for_torch())
    names = DimNames()
    names.learn(program, shapes)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in program.graph.nodes if node.op == "output")
    values = [node.meta["val"] for node in (*nodes, *output.args[0])]
    return names, [[names.of(size) for size in value.shape] for value in values if isinstance(value, torch.Tensor)]


def test_sizes_are_numbers_names_and_expressions() -> None:
    names, sizes = named(({0: "rows"}, {0: Dim("batch", min=2), 1: "width"}, None), Two(), (X, Y, 2.0))
    assert sizes == [["rows", 6], ["batch", "width"], ["2*rows", 6], ["batch", "width"]]
    assert names.dropped == {}
    assert names.of(7) == 7


def test_sizes_without_a_name_have_one_of_their_place_that_no_other_has() -> None:
    _, sizes = named(({0: Dim.DYNAMIC}, None), Two(), (X, Y))
    assert sizes == [["x_dim_0", 6], [4, 6], ["2*x_dim_0", 6], [4, 6]]
    _, sizes = named(({0: Dim.DYNAMIC}, {0: "x_dim_0"}), Two(), (X, Y))
    assert (sizes[1], sizes[3]) == (["x_dim_0", 6], ["x_dim_0", 6])
    assert sizes[0][0] != "x_dim_0"
    assert sizes[2][0] == f"2*{sizes[0][0]}"
    _, sizes = named(None, Two(), (X, Y))
    assert sizes == [[4, 6], [4, 6], [8, 6], [4, 6]]


def test_a_derived_dim_gives_its_root_a_name() -> None:
    half = Dim("half", min=2, max=64)
    names, sizes = named(({0: 2 * half}, {0: 2 * half}), Halves(), (X, Y))
    assert sizes == [["2*half", 6], ["2*half", 6], ["2*half", 6]]
    assert names.dropped == {}
    assert named(({0: 2 * half + 2}, {0: half}), Halves(), (torch.ones(8, 6), torch.ones(3, 6)))[1][0][0] == "2*half + 2"


class Same(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def test_one_size_has_one_name() -> None:
    names, sizes = named(({0: "rows"}, {0: "lines"}), Same(), (X, Y))
    assert [size[0] for size in sizes] == ["rows"] * 3
    assert names.dropped == {"lines": "rows"}


@pytest.mark.parametrize(
    ("rows", "lines", "dropped"),
    [
        ("rows", Dim("lines"), {"lines": "rows"}),
        (Dim("rows"), "lines", {"lines": "rows"}),
        # The capture reports these.
        (Dim("rows"), Dim("lines"), {}),
    ],
)
def test_which_names_are_dropped(rows: Any, lines: Any, dropped: dict[str, str]) -> None:
    as_names = DynamicShapes.parse(({0: "rows"}, {0: "lines"}), Same(), (X, Y), {})
    program = torch.export.export(Same(), (X, Y), dynamic_shapes=as_names.for_torch())
    names = DimNames()
    names.learn(program, DynamicShapes.parse(({0: rows}, {0: lines}), Same(), (X, Y), {}))
    assert names.dropped == dropped


def test_names_of_an_earlier_program_are_forgotten() -> None:
    shapes = DynamicShapes.parse(({0: "rows"}, None), Two(), (X, Y), {})
    others = DynamicShapes.parse(({0: "lines"}, None), Two(), (X, Y), {})
    program = torch.export.export(Two(), (X, Y), dynamic_shapes=shapes.for_torch())
    size = next(iter(program.graph.nodes)).meta["val"].shape[0]
    names = DimNames()
    names.learn(program, shapes)
    assert names.of(size) == "rows"
    names.learn(program, others)
    assert names.of(size) == "lines"


def test_names_are_positive_integers() -> None:
    shapes = DynamicShapes.parse(({0: "rows"}, None), Two(), (X, Y), {})
    program = torch.export.export(Two(), (X, Y), dynamic_shapes=shapes.for_torch())
    size = next(iter(program.graph.nodes)).meta["val"].shape[0]
    names = DimNames()
    names.learn(program, shapes)
    # A maximum with a number below all sizes, and a floor, are left out only if the size is known to be a positive integer.
    expression = size.node.expr
    import sympy

    assert names.text(sympy.Max(expression, 0)) == "rows"
    assert names.text(sympy.floor(expression)) == "rows"


@pytest.mark.parametrize("count", [1, 3])
def test_inputs_that_the_program_lacks(count: int) -> None:
    """Names of dims whose inputs or axes the program does not have are left out."""
    shapes = DynamicShapes.parse(({0: "rows", 1: "width"}, {0: "rows"}), Two(), (X, Y), {})
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(4),), dynamic_shapes=({0: Dim.DYNAMIC},))
    names = DimNames()
    names.learn(program, shapes)
    size = next(iter(program.graph.nodes)).meta["val"].shape[0]
    assert names.of(size) == "rows"
    assert names.text(count * size.node.expr) == ("rows" if count == 1 else "3*rows")


def test_a_derived_dim_that_the_program_computes_in_another_way() -> None:
    """2 * half and other + 5 are equal for 5, but not for 7."""
    other, half = Dim("other", min=2, max=64), Dim("half", min=2, max=64)
    args = torch.ones(8, 6), Y
    program = torch.export.export(Halves(), args, dynamic_shapes=({0: other + 5}, None))
    names = DimNames()
    names.learn(program, DynamicShapes.parse(({0: 2 * half}, None), Halves(), args, {}))
    (symbol,) = next(iter(program.graph.nodes)).meta["val"].shape[0].node.expr.free_symbols
    assert names.text(symbol) != "half"


class Joined(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + torch.cat([y, z])


def test_a_derived_dim_that_the_program_computes_from_two() -> None:
    args, auto = (torch.ones(8, 6), torch.ones(3, 6), torch.ones(5, 6)), {0: Dim.AUTO}
    program = torch.export.export(Joined(), args, dynamic_shapes=(auto, auto, auto))
    names = DimNames()
    names.learn(program, DynamicShapes.parse(({0: 2 * Dim("half", min=2, max=64)}, None, None), Joined(), args, {}))
    size = next(iter(program.graph.nodes)).meta["val"].shape[0]
    assert len(size.node.expr.free_symbols) == 2
    assert "half" not in str(names.of(size))
