"""Branches that have another way for certain sizes, among them the example's: the way for all others may be right for these as well."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import sympy

from onnxplain.capture.observe import size_limits
from onnxplain.capture.observe.guards import Guard, Guards
from onnxplain.capture.rewrite import general_ways
from onnxplain.diagnostics import Fix, Location
from onnxplain.request import InputDim, Request
from onnxplain.source import syntax

Sizes: TypeAlias = "Mapping[InputDim, int]"

_MANY = 64
"""How many sizes beside the example's a way may be for: more are not certain ones."""
_FURTHER = 512
"""How far from the example's size others are sought for which a way is, such as the next multiples."""


def found(request: Request, guards: Guards, guard: Guard | None) -> tuple[list[Fix], tuple[Sizes, ...]]:
    """The fix for the branch that `guard` comes from, and the sizes with which its code must be compared, beside those of the example.

    Without a fix if the branch does not ask whether sizes are certain ones, or if there are too many of these to compare.
    """
    if guard is None or not guard.stack or not guard.asked_by_python or not _is_number(guard.relation):
        return [], ()
    place = syntax.without_body(guard.stack[-1])
    fixes = general_ways.for_certain_sizes(place)
    asked = [each.relation for each in guards.made if fixes and each.stack and _is_same_test(place, each.stack[-1])]
    # NOTE: where the test also found a size that is no certain one, the example does not take the way for these.
    if not fixes or not all(map(_is_number, asked)):
        return [], ()
    resizes = general_ways.only_resizes(place)
    sizes = [_certain(request, guards, relation, resizes=resizes) for relation in dict.fromkeys(asked)]
    if None in sizes:
        return [], ()
    return fixes, tuple(itertools.chain.from_iterable(filter(None, sizes)))


def _is_number(relation: sympy.Basic) -> bool:
    """Whether `relation` says that a size is a number."""
    return isinstance(relation, sympy.Eq) and any(side.is_Integer for side in relation.args)


def _is_same_test(place: Location, other: Location) -> bool:
    """Whether two places are in the same test."""
    test = syntax.test_at(place)
    region = None if test is None else syntax.region(place.file, test)
    inside = syntax.without_body(other).region
    return other.file == place.file and region is not None and inside is not None and syntax.covers(region, inside)


def _certain(request: Request, guards: Guards, relation: sympy.Basic, *, resizes: bool) -> list[Sizes] | None:
    """Sizes for which `relation` holds: the least and the largest of each dim, those of the other dims, and those of two dims together.

    With a size next to a single one: what the code asks of another size may be known from it, and so not be among the guards. Of multiples
    there is no end; where the way for all other sizes only `resizes` a tensor, which leaves it as it is if it has the size already, the
    nearest ones stand for all.
    """
    dims = request.shapes.dynamic
    alike: dict[sympy.Basic, list[InputDim]] = {}
    for dim in dims:
        if (symbol := guards.symbols.of(dim)) is not None:
            alike.setdefault(guards.symbols.expression(symbol) if symbol not in relation.free_symbols else symbol, []).append(dim)
    about = [symbol for symbol in alike if symbol in relation.free_symbols]
    if len(about) < len(relation.free_symbols):
        return None
    example = {symbol: alike[symbol][0].size for symbol in about}
    known = {symbol: _interval(relation, symbol, example, alike[symbol]) for symbol in about}
    ranges = {symbol: each for symbol, each in known.items() if each is not None}
    if resizes and not ranges and len(about) == 1:
        (symbol,) = about
        return [_of_dims({symbol: size}, alike) for size in _further(relation, symbol, example[symbol], alike[symbol])] or None
    if len(ranges) < len(about):
        return None
    ends = [{symbol: size} for symbol, each in ranges.items() for size in _ends(*each) if size != example[symbol]]
    together = list(_traded(relation, example))
    if len(about) > 1 and not together:
        return None
    others = {symbol: each[0].size + 2 for symbol, each in alike.items() if symbol not in about}
    return [_of_dims(each, alike) for each in (others, *ends, *together) if each]


def _ends(first: int, last: int) -> tuple[int, int]:
    return (first, last) if first < last else (first - 1, last + 1)


def _interval(
    relation: sympy.Basic, symbol: sympy.Basic, example: Mapping[sympy.Basic, int], dims: Sequence[InputDim]
) -> Sequence[int] | None:
    """The least and the largest size for which `relation` holds, while the others are those of the example; None if there are many."""
    rest = {other: sympy.Integer(size) for other, size in example.items() if other != symbol}
    least, most = max(dim.least for dim in dims), min(dim.most for dim in dims)
    ends = size_limits.around(relation.xreplace(rest), symbol, example[symbol], least, most)
    return None if ends is None or ends[1] - ends[0] > _MANY else ends


def _further(relation: sympy.Basic, symbol: sympy.Basic, example: int, dims: Sequence[InputDim]) -> list[int]:
    """The next sizes below and above the example's for which `relation` holds, with others between them; two above, where there are."""
    least, most = max(dim.least for dim in dims), min(dim.most for dim in dims)
    below, above = range(example - 1, max(least, example - _FURTHER) - 1, -1), range(example + 1, min(most, example + _FURTHER) + 1)

    def again(sizes: Iterable[int]) -> Iterator[int]:
        before = True
        for size in sizes:
            now = size_limits.holds(relation, {symbol: size}) is True
            if now and not before:
                yield size
            before = now

    return [*itertools.islice(again(below), 1), *itertools.islice(again(above), 2)]


def _traded(relation: sympy.Basic, example: Mapping[sympy.Basic, int]) -> Iterator[dict[sympy.Basic, int]]:
    """Sizes for which `relation` holds where one dim is twice as large and another half as large, as with `height * width == 64`."""
    for more, less in itertools.permutations(example, 2):
        sizes = {more: 2 * example[more], less: example[less] // 2}
        if size_limits.holds(relation, {**example, **sizes}):
            yield sizes


def _of_dims(sizes: Mapping[sympy.Basic, int], alike: Mapping[sympy.Basic, Iterable[InputDim]]) -> Sizes:
    return {dim: size for symbol, size in sizes.items() for dim in alike[symbol]}
