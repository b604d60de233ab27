"""What the decisions of a capture say of a dim: relations between symbols, without a capture."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import sympy
from torch.utils._sympy.functions import Mod, PythonMod

from onnxplain.capture.observe.dim_symbols import DimSymbols, as_text
from onnxplain.capture.observe.guards import Guard, Guards, larger, smaller
from onnxplain.capture.observe.size_limits import Limit
from onnxplain.diagnostics import Location, Region
from onnxplain.request import Kind

N, M, K, DATA, MORE = sympy.symbols("n m k data more", integer=True, positive=True)
THREE = sympy.Integer(3)


@dataclasses.dataclass(frozen=True)
class Dim:
    """What the guards ask about a dim of an input."""

    symbol: sympy.Symbol | None
    size: int = 3
    kind: Kind = Kind.DIM


class Symbols(DimSymbols):
    """The symbols of a capture that knows this much."""

    def __init__(
        self,
        replaced: Mapping[Any, Any] | None = None,
        ranges: Mapping[Any, tuple[int, int]] | None = None,
        asserted: Iterable[sympy.Basic] = (),
    ) -> None:
        self._replaced, self._ranges, self._asserted = dict(replaced or {}), ranges or {}, list(asserted)

    def of(self, dim: Any) -> sympy.Symbol | None:
        return dim.symbol  # type: ignore[no-any-return]

    def all(self) -> set[sympy.Basic]:
        return {N, M, K}

    def replaced(self) -> dict[sympy.Symbol, sympy.Basic]:
        return self._replaced

    def range_of(self, symbol: sympy.Basic | None) -> Any:
        return tuple(map(sympy.Integer, self._ranges[symbol])) if symbol in self._ranges else None

    def asserted(self) -> list[sympy.Basic]:
        return self._asserted


class Parts:
    """An operator that returns as many tensors as sizes say."""

    counts = True


def guard(relation: sympy.Basic, *, line: int | None = 1, asked: bool = False, operator: Any = None) -> Guard:
    return Guard(relation, () if line is None else (Location("model.py", Region(line)),), asked, operator)


def guards(*made: Guard, **known: Any) -> Any:
    return Guards(Symbols(**known), made, ())


EQUAL, LIMITED, OTHER = sympy.Eq(N, 3), N <= 9, sympy.Ne(N, 1)


@pytest.mark.parametrize(
    ("found", "constant"),
    [
        (guards(), None),
        (guards(replaced={N: THREE}), 3),
        (guards(replaced={N: M}), None),
        (guards(ranges={N: (3, 3)}), 3),
        (guards(ranges={N: (2, 3)}), None),
        (guards(guard(EQUAL, asked=True)), 3),
        (guards(guard(EQUAL)), None),
        (guards(guard(sympy.Eq(M, 3), asked=True)), None),
        (guards(guard(sympy.Eq(N, M), asked=True)), None),
        (guards(guard(OTHER, asked=True)), None),
        (guards(asserted=[sympy.Eq(N, 4)]), 4),
        (guards(asserted=[N <= 4]), None),
    ],
)
def test_the_only_size_of_a_dim(found: Any, constant: int | None) -> None:
    assert found.constant(Dim(N)) == constant
    assert found.varies(Dim(N)) is (constant is None)
    assert not found.varies(Dim(None))


def test_the_guard_that_decides() -> None:
    first, kept, fixes = guard(OTHER, line=1), guard(LIMITED, line=2), guard(EQUAL, line=3)
    assert guards(first, kept, fixes, asserted=[LIMITED]).decisive(Dim(N)) is fixes
    assert guards(first, kept, asserted=[OTHER, LIMITED]).decisive(Dim(N)) is kept
    assert guards(first, kept, asserted=[OTHER]).decisive(Dim(N)) is first
    assert guards(guard(EQUAL, line=None), first).decisive(Dim(N)) is first
    assert guards(guard(M <= 9), first).decisive(Dim(N)) is first
    of_other = guard(M <= 9)
    assert guards(of_other, replaced={N: M}).decisive(Dim(N)) is of_other
    assert guards(guard(M <= 9)).decisive(Dim(N)) is None


def test_the_guards_that_exclude_sizes() -> None:
    made = [guard(N >= 4), guard(N >= 2), guard(sympy.Ne(N, 7)), guard(N + M >= 99), guard(N >= 5, line=None), guard(N >= 3)]
    assert list(guards(*made).excluding(Dim(N), iter([3, 7]))) == [made[0], made[2]]
    assert list(guards(*made, guard(M > 8), replaced={N: M}).excluding(Dim(N), [3])) == [made[0], made[3], guard(M > 8)]


@pytest.mark.parametrize(
    ("made", "place"),
    [
        ([], None),
        ([guard(sympy.Eq(N * M, 12))], 0),
        ([guard(sympy.Eq(K * M, 12))], None),
        ([guard(sympy.Ne(N, 12))], None),
        ([guard(sympy.Eq(Mod(N, 2), 0))], None),
        ([guard(sympy.Eq(N, M))], None),
        ([guard(sympy.Eq(N, 3), line=None), guard(sympy.Eq(N, 3))], 1),
        ([guard(sympy.Eq(N, 3), line=None)], 0),
        ([guard(sympy.Eq(N, 3), operator=Parts())], None),
    ],
)
def test_the_guard_that_fixes(made: list[Guard], place: int | None) -> None:
    assert guards(*made).fixing(Dim(N)) is (None if place is None else made[place])


def test_dims_that_are_broadcast() -> None:
    one, three, five = Dim(N, 1), Dim(M, 3), Dim(K, 5)
    holding, first, second = guard(N <= M), guard(sympy.Eq(N, M)), guard(sympy.Eq(N, K))
    assert guards(holding, first, second).broadcast([one, three, five]) == {one: first}
    unequal = guard(sympy.Eq(M, K))
    assert guards(unequal).broadcast([one, three, five]) == {three: unequal, five: unequal}
    assert guards(holding).broadcast([one, three]) == {}


def test_decisions_in_the_names_of_dims() -> None:
    made = [
        guard(N <= 9),
        guard(N <= 9, line=2),
        guard(N <= 8, line=None),
        guard(M <= 9),
        guard(N <= M),
        guard(N <= DATA),
        guard(sympy.Eq(Mod(N, 2), 0)),
    ]
    names, others = {Dim(N): "rows"}, {Dim(M): "columns"}
    told = [(text, made.index(each)) for text, each in guards(*made).asked(names, others)]
    assert told == [("rows <= 9", 0), ("rows <= columns", 4), ("rows % 2 == 0", 6)]
    assert [text for text, _ in guards(*made, replaced={N: 2 * MORE}).asked(names, others)] == ["rows <= 9", "rows <= columns"]
    derived = {Dim(N, kind=Kind.DERIVED): "half + 1"}
    assert [text for text, _ in guards(made[0]).asked(derived, {})] == ["(half + 1) <= 9"]


@pytest.mark.parametrize(
    ("made", "asserted", "expected"),
    [
        ([guard(N <= 9)], [N <= 9], [(Limit(most=9), 0)]),
        ([guard(N <= 7), guard(N <= 9)], [N <= 9], [(Limit(most=9), 1)]),
        ([guard(N <= 9, line=None), guard(N <= 7)], [N <= 9], [(Limit(most=9), 1)]),
        ([], [N <= 9], []),
        ([guard(N <= 9)], [], []),
        ([guard(N <= M)], [N <= M], []),
        ([guard(N <= 9, asked=True)], [N <= 9], [(Limit(most=9), 0)]),
        ([guard(sympy.Eq(N // 3, 1), asked=True)], [sympy.Eq(N // 3, 1)], []),
        ([guard(sympy.Eq(N // 3, 1))], [sympy.Eq(N // 3, 1)], [(Limit(most=5, least=3), 0)]),
        ([guard(N <= 300)], [N <= 300], []),
    ],
)
def test_limits_of_a_dim(made: list[Guard], asserted: list[sympy.Basic], expected: list[tuple[Limit, int]]) -> None:
    told = guards(*made, asserted=asserted).limits(Dim(N, 4), 0, 100)
    assert [(limit, made.index(each)) for limit, each in told] == expected


def test_checks_of_numbers_from_data() -> None:
    relations = [DATA >= 2, sympy.Eq(DATA, N), sympy.Ne(DATA, N), N <= 9, DATA <= N, sympy.Eq(DATA + 1, N)]
    found = guards(*map(guard, relations), guard(relations[0], line=None), asserted=relations)
    assert [relation for relation, stack in found.checks() if stack] == relations[:2]


def sizes(tried: Callable[..., Any], size: int) -> list[int]:
    return [each[N] for each in tried(N, {N: size, M: 5}) if each[M] == 5]


def test_sizes_that_are_tried() -> None:
    assert sizes(larger, 3) == [*range(4, 36), 48, 96, 192, 384, 768, 1536, 3072]
    assert sizes(smaller, 100) == [*range(99, 67, -1), 50, 25, 12, 6, 3]
    assert sizes(smaller, 40) == [*range(39, 7, -1), 5, 2]
    assert sizes(smaller, 3) == [2]
    assert sizes(smaller, 2) == []


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (Mod(N, 2) <= 0, "n % 2 == 0"),
        (PythonMod(N, 2) <= 1, "n % 2 <= 1"),
        (sympy.Le(N, 0, evaluate=False), "n <= 0"),
        (sympy.Eq(-Mod(N, 2) - 1, -1), "n % 2 == 0"),
        (sympy.Eq(Mod(N, 3) + 2, 3), "n % 3 == 1"),
        (sympy.Eq(4 * Mod(N, 3), 8), "4*(n % 3) == 8"),
        (sympy.Ne(N, 1), "n != 1"),
        (N + 1 > M, "n + 1 > m"),
        (N * 2, "2*n"),
    ],
)
def test_relations_as_python_has_them(relation: sympy.Basic, text: str) -> None:
    assert as_text(relation).replace(" ", "") == text.replace(" ", "")


def test_sizes_of_the_example_by_symbol() -> None:
    symbols = Symbols(replaced={N: 2 * MORE, M: MORE + 3, K: DATA})
    assert symbols.sizes([Dim(N, 8)]) == {N: 8, MORE: 4}
    assert symbols.sizes([Dim(M, 8)]) == {M: 8, MORE: 5}
    assert symbols.sizes([Dim(K, 8), Dim(None, 3)]) == {K: 8, DATA: 8}
    assert Symbols(replaced={N: MORE * DATA}).sizes([Dim(N, 8)]) == {N: 8}
    assert [dim.size for dim in symbols.places([MORE <= 3], [Dim(N, 8), Dim(K, 7), Dim(None)])] == [8]
    assert symbols.text(MORE <= 3, {Dim(K): "rows"}) == "more <= 3"
    assert symbols.text(DATA <= 3, {Dim(K): "rows"}) == "rows <= 3"
