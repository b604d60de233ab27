"""What a copy of a model shares with the model, and the code of functions with edits."""

from __future__ import annotations

import collections
import enum
import pathlib
from types import CodeType
from typing import Any

import pytest
import torch
from marks import needs_columns

from onnxplain.capture.eager.copies import Copies
from onnxplain.capture.trials import edited_code
from onnxplain.diagnostics import Edit, Region


class Mode(enum.Enum):
    FAST = 1


class Held:
    def __init__(self) -> None:
        self.parts = [torch.zeros(1)]
        self.own = self


class Weight(torch.nn.Parameter):
    pass


class Names(dict[str, int]):
    pass


class Slotted:
    __slots__ = ("part", "unset")

    def __init__(self) -> None:
        self.part = torch.zeros(1)


LEAF = torch.zeros(2, requires_grad=True)
PARTS = (1, "a")


@pytest.mark.parametrize(
    ("value", "is_copied"),
    [
        ([1], True),
        ([0] * 10_000, True),
        ([0] * 10_001, False),
        ({"a": 1}, True),
        (collections.OrderedDict(a=1), True),
        (Names(a=1), False),
        ({1, 2}, True),
        (frozenset({1}), False),
        (PARTS, False),
        ((1, [2]), True),
        ("text", False),
        (Mode.FAST, False),
        (torch.float32, False),
        (LEAF, True),
        (LEAF * 2, False),
        (torch.nn.Parameter(torch.zeros(2)), True),
        (Weight(torch.zeros(2)), False),
        (torch.nn.Linear(2, 2), True),
        (Held(), True),
        (Slotted(), True),
        (len, False),
        (torch, False),
        (property(len), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_copied(value: Any, is_copied: bool) -> None:
    copies = Copies()
    copied = copies.of(value)
    assert type(copied) is type(value)
    assert (copied is not value) is is_copied
    assert copies.of(value) is copied or type(value) in (property, tuple)
    if isinstance(value, torch.Tensor):
        assert torch.equal(copied, value)
        assert copied.requires_grad is value.requires_grad
    elif isinstance(value, list | tuple | dict | set):
        assert copied == value


def test_parts_are_copied_once() -> None:
    held = Held()
    copied = Copies().of(held)
    assert copied.own is copied
    assert copied.parts[0] is not held.parts[0]
    slotted = Copies().of(value := Slotted())
    assert torch.equal(slotted.part, value.part)
    assert slotted.part is not value.part
    assert not hasattr(slotted, "unset")


@pytest.mark.parametrize(("weights", "copied"), [(24, [True, True]), (23, [True, False]), (12, [True, False]), (11, [False, False])])
def test_weights_are_copied_up_to_a_size(weights: int, copied: list[bool]) -> None:
    first, second = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))
    first.mark = 1  # type: ignore[attr-defined]  # users set attributes
    copies = Copies(weights=weights)
    made = [copies.of(first), copies.of(second), copies.of(first)]
    assert [one is not other for one, other in zip(made, (first, second), strict=False)] == copied
    assert made[2] is made[0]
    assert made[0].mark == 1


SOURCE = """\
def kept(function):
    return function


@kept
@kept
def forward(x, y):
    é = x + 1; z = y * 2
    return z - é


def other(x):
    return x
"""


def place(text: str, number: int = 0) -> Region:
    """The region of a text in `SOURCE` that is on one line."""
    line, row = [(line, row) for row, line in enumerate(SOURCE.split("\n"), 1) if text in line][number]
    return Region(row, line.index(text) + 1, row, line.index(text) + len(text) + 1)


def edited(folder: pathlib.Path, *edits: tuple[Region, str]) -> dict[str, CodeType]:
    (folder / "model.py").write_text(SOURCE, encoding="utf-8")
    made = edited_code.of([Edit(str(folder / "model.py"), region, code) for region, code in edits])
    return {name: code for (_, name, _), code in made.items()}


def lines(code: CodeType) -> set[int | None]:
    return {line for _, _, line in code.co_lines()} - {code.co_firstlineno}


def test_the_code_of_edited_functions(tmp_path: pathlib.Path) -> None:
    made = edited(tmp_path, (place("x + 1"), "(x\n       + 10)"), (place("2"), "3"))
    assert made.keys() == {"forward"}
    assert made["forward"].co_firstlineno == 5
    assert lines(made["forward"]) == {8, 9}
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)
    assert namespace["forward"](1, 2) == 2
    namespace["forward"].__code__ = made["forward"]
    assert namespace["forward"](1, 2) == -5


@needs_columns
def test_the_places_of_edited_code(tmp_path: pathlib.Path) -> None:
    made = edited(tmp_path, (place("x + 1"), "(x\n       + 10)"))["forward"]
    before: dict[str, Any] = {}
    exec(compile(SOURCE, "model.py", "exec"), before)
    known = set(before["forward"].__code__.co_positions())
    # The columns are in bytes, and `é` has two. The new code is where the old one was.
    assert (8, 8, 9, 14) in set(made.co_positions())
    assert {each for each in made.co_positions() if each not in known} == set()


@pytest.mark.parametrize(
    "edits",
    [
        [(place("x + 1"), "x +")],
        [(place("x + 1"), "y"), (place("x + 1"), "z")],
        [(place("x + 1"), "y"), (place("+ 1"), "+ 2")],
        [(place("return z"), "  return z")],
    ],
)
def test_edits_that_do_not_fit(tmp_path: pathlib.Path, edits: list[tuple[Region, str]]) -> None:
    assert edited(tmp_path, *edits) == {}


def test_edits_side_by_side(tmp_path: pathlib.Path) -> None:
    made = edited(tmp_path, (place("x + "), "y * "), (place("1;"), "4;"), (place("return x"), "return -x"))
    assert made.keys() == {"forward", "other"}
    assert 4 in made["forward"].co_consts
    assert lines(made["other"]) == {13}


def test_edits_within_later_ones_are_left_out() -> None:
    inner, outer, elsewhere = (Region(2, 5, 2, 9), Region(2, 1, 4, 1), Region(6, 1, 6, 4))
    before = [Edit("a", inner, "1"), Edit("b", inner, "2"), Edit("a", elsewhere, "3")]
    edits = [Edit("a", outer, "4"), Edit("a", Region(8, 1, 8, 2), "5")]
    assert edited_code.joined(before, edits) == [before[1], before[2], *edits]
