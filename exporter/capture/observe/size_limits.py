"""The limit that a relation puts on a size: an upper bound, a multiple, or none."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping

import sympy

from onnxplain.torch_internals.symbolic_expressions import at, remainders

_SMALL = range(34)
_OTHERS = range(1, 5)
"""The sizes of the other dims: a product or a sum of sizes may equal a small number only where all of them are small."""
LARGEST = 2**20
"""The most elements along a dim of real data, as far as findings are concerned."""
_FEW = 5
_DENSE = 130
_TRIED = (0, 1, 2, 3, 5, 8, 100, 2**31 + 7)
_MOST_TRIED = 2


@dataclasses.dataclass(frozen=True)
class Limit:
    """A condition on the size of a dim.

    Attributes:
        most: The largest size; None if there is none.
        least: The least size; None if smaller sizes are as good, or fail anyway.
        factor: The number of which the size must be a multiple.
    """

    most: int | None = None
    least: int | None = None
    factor: int = 1

    def allows(self, size: int) -> bool:
        """Whether the limit allows `size`."""
        return (self.most is None or size <= self.most) and (self.least is None or size >= self.least) and size % self.factor == 0

    def of(self, name: str) -> str:
        """The limit as a relation of `name`."""
        if self.most is None:
            return f"{name} % {self.factor} == 0"
        if self.least == self.most:
            return f"{name} == {self.most}"
        return f"{name} <= {self.most}" if self.least is None else f"{name} >= {self.least} and {name} <= {self.most}"


def limit_of(relation: sympy.Basic, symbol: sympy.Symbol, example: int, least: int, most: int) -> Limit | None:
    """The limit that `relation` puts on a size between `least` and `most`; None if it puts none that a Dim could state.

    The function tries sizes. Lower bounds are limits only where a number that the graph fixed is computed from the size, as in
    `size // 2 == 3`: a size smaller than a kernel or a window fails anyway. Relations that only concern the sizes 0 and 1, which torch
    treats as special cases, are not limits either.
    """
    sizes = sorted({size for size in _worth_trying(relation, example) if max(least, 2) <= size <= most})
    tried = {size: holds(relation, {symbol: size}) for size in sizes}
    failing = [size for size, holds in tried.items() if holds is False]
    holding = [size for size, holds in tried.items() if holds is True]
    if not holding or not any(size > example for size in failing):
        return None
    above = min((size for size in failing if size > min(holding)), default=None)
    # NOTE: a single size that fails, of an example of size 1, which the capture took for a larger one; or more than real data have.
    if above is None or above > LARGEST:
        return None
    if max(holding) < above:
        smaller = [size for size in {1, *tried} if least <= size < min(holding)] if isinstance(relation, sympy.Eq) else []
        below = max((size for size in smaller if holds(relation, {symbol: size}) is False), default=None)
        return Limit(
            most=_last(relation, symbol, max(holding), above),
            least=None if below is None else _last(relation, symbol, min(holding), below),
        )
    factor = int(sympy.gcd_list(holding))
    return None if any(size % factor == 0 for size in failing) else Limit(factor=factor)


def interval_of(relation: sympy.Basic, symbol: sympy.Symbol, example: int, least: int, most: int) -> tuple[int, int] | None:
    """The sizes around `example`, from `least` to `most`, for which `relation` holds; None if it holds for others as well, or for one only.

    The function tries sizes.
    """
    ends = around(relation, symbol, example, least, most)
    return None if ends is None or ends[0] == ends[1] else ends


def around(relation: sympy.Basic, symbol: sympy.Basic, example: int, least: int, most: int) -> tuple[int, int] | None:
    """As `interval_of`, which may also be a single size."""
    tried = {size: holds(relation, {symbol: size}) for size in {*_worth_trying(relation, example), least} if least <= size <= most}
    failing = [size for size, outcome in tried.items() if outcome is False]
    below = max((size for size in failing if size < example), default=None)
    above = min((size for size in failing if size > example), default=None)
    first = least if below is None else _last(relation, symbol, example, below)
    last = most if above is None else _last(relation, symbol, example, above)
    apart = any(outcome is not False for size, outcome in tried.items() if not first <= size <= last)
    return None if apart or first > last or tried.get(example) is not True else (first, last)


def _last(relation: sympy.Basic, symbol: sympy.Basic, right: int, wrong: int) -> int:
    """The last size from `right` on, in the direction of `wrong`, for which `relation` holds. It does not hold for `wrong`."""
    while abs(wrong - right) > 1:
        middle = (right + wrong) // 2
        right, wrong = (middle, wrong) if holds(relation, {symbol: middle}) else (right, middle)
    return right


def is_bound(relation: sympy.Basic, symbol: sympy.Symbol, example: int, most: int) -> bool:
    """Whether `relation` holds for a few sizes only, such as the divisors of a number, and so excludes all larger ones up to `most`."""
    if not any(isinstance(each, remainders()) and symbol in each.args[1].free_symbols for each in sympy.preorder_traversal(relation)):
        return False
    largest = max((int(each) for each in relation.atoms(sympy.Integer)), default=0)
    beyond = [size for size in range(largest + 1, largest + _FEW) if size <= most]
    tried = [holds(relation, {symbol: size}) for size in beyond]
    return holds(relation, {symbol: example}) is not False and bool(tried) and all(each is False for each in tried)


def excludes(relation: sympy.Basic, least: int) -> bool:
    """Whether `relation` is false for some sizes from `least` on. The function tries one size after another.

    Sizes that are too large for real data do not count: libraries ask whether there are more than 2 ** 31 elements.
    """
    symbols = relation.free_symbols
    tried = (
        {**dict.fromkeys(symbols, other), symbol: size}
        for other in (_OTHERS if len(symbols) > 1 else _OTHERS[:1])
        for symbol in symbols
        for size in _worth_trying(relation, least)
        if least <= size <= LARGEST and (other >= least or len(symbols) == 1)
    )
    return any(holds(relation, sizes) is False for sizes in tried)


@functools.lru_cache
def implies(relations: tuple[sympy.Basic, ...], fact: sympy.Basic) -> bool:
    """Whether `fact` holds for all sizes for which `relations` hold. The function tries sizes, if `fact` is about one size only."""
    if fact == sympy.true or fact in relations:
        return True
    if len(fact.free_symbols) != 1:
        return False
    (symbol,) = fact.free_symbols
    about = [relation for relation in relations if relation.free_symbols <= {symbol}]
    tried = {*range(_DENSE), *itertools.chain.from_iterable(_worth_trying(relation, _DENSE) for relation in (fact, *about))}
    each = ({symbol: size} for size in sorted(tried) if size >= 0)
    return all(holds(fact, sizes) or any(holds(relation, sizes) is False for relation in about) for sizes in each)


def may_fail(relation: sympy.Basic) -> bool:
    """Whether `relation` is false, or not known to be true, for some numbers: not so for `Min(9, n) <= n`. The function tries some."""
    symbols = sorted(relation.free_symbols, key=str)
    if len(symbols) > _MOST_TRIED:
        return True
    numbers = sorted({*_TRIED, *(int(number) + more for number in relation.atoms(sympy.Integer) for more in (-1, 0, 1))} - {-1})
    tried = (dict(zip(symbols, each, strict=True)) for each in itertools.product(numbers, repeat=len(symbols)))
    return any(holds(relation, each) is not True for each in tried)


def holds(relation: sympy.Basic, sizes: Mapping[sympy.Basic, int]) -> bool | None:
    """Whether `relation` holds for `sizes`; None if that cannot be computed."""
    value = at(relation, sizes)
    return bool(value) if value in (sympy.true, sympy.false) else None


def _worth_trying(relation: sympy.Basic, example: int) -> Iterator[int]:
    yield from _SMALL
    for number in (example, *(int(each) for each in relation.atoms(sympy.Integer))):
        yield from range(number - 2, number + 3)
        yield from (2 * number, 3 * number, 2 * number + 1)


def computed_one(relation: sympy.Basic) -> sympy.Basic | None:
    """The computed size, such as `height // 32`, that is 1 or at most 1 by `relation`; None if it says no such thing."""
    match relation:
        case sympy.Eq(args=(one, size)) if one == 1:
            found = size
        case sympy.Ge(args=(one, size)) if one == 1:
            found = size
        case sympy.Eq(args=(size, one)) | sympy.Le(args=(size, one)) if one == 1:
            found = size
        case _:
            return None
    return None if found.is_Symbol else found
