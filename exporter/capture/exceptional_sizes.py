"""Sizes for which a model has separate code, such as multiples that need no padding: the code for all others may be right for them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import sympy

from onnxplain.request import Request
from onnxplain.torch_internals.symbolic_expressions import remainders

from .attempts import Attempt
from .explain.assumptions import is_branch
from .larger_examples import with_sizes
from .observe.guards import Guards
from .observe.replays import Sizes
from .observe.size_limits import holds

_MORE = 2, 3, 1, 4, 6, 8, 12, 16, 32
"""By how much an example may be larger that is no multiple: 1 comes later, since torch treats a part of size 1 in another way."""
_FAR = 512
"""How far from the example's size others are sought for which a model has separate code."""
_FEW = 16
"""How many such sizes may be in a row: `size // 8` is the same for eight of them."""
_MOST = 16
"""How many of them are tried altogether: a model that asks more often is not run."""
_ABOVE = 2
"""How many of them above the example are tried, beside one below."""


def without_multiples(request: Request, guards: Guards) -> Request | None:
    """`request` with a larger example for which fewer branches find a multiple; None if there is none, or if there is no such branch."""
    dims = _Dims(request, guards)
    taken = {relation for guard, relation in dims.branches if isinstance(relation, sympy.Eq) and relation.has(*remainders())}
    symbols = {symbol for relation in taken for symbol in relation.free_symbols}
    tried: list[tuple[int, int, Sizes]] = []
    for more in _MORE if taken else ():
        sizes = {**dims.sizes, **{symbol: dims.sizes[symbol] + more for symbol in symbols}}
        left = sum(holds(each, sizes) is not False for each in taken)
        if left < len(taken) and dims.allow(sizes):
            broken = sum(holds(each, sizes) is False for each in dims.required)
            tried.append((left, broken, sizes))
    return dims.request_of(min(tried, key=lambda each: each[:2])[2]) if tried else None


def with_exceptions_allowed(made: Attempt, request: Request) -> tuple[Attempt, list[Request]]:
    """`made` without the answers of branches that exclude single sizes, as `height != 32` does, and `request` with some of these sizes.

    Whether the program is right for them all the same is for the caller to find out.
    """
    dims = _Dims(request, made.guards)
    answers, tried = set[int](), dict[object, Sizes]()
    for _, asked in itertools.groupby(dims.branches, lambda each: each[0].stack):
        # NOTE: of two tuples, Python compares the first elements that differ last: those before are equal for the example alone.
        together = list(asked)
        *before, last = dict.fromkeys(relation for _, relation in together)
        found = list(dims.exceptions(last)) if all(isinstance(each, sympy.Eq) for each in before) else []
        if found:
            answers.update(id(guard) for guard, _ in together)
            found += [sizes for each in before for sizes in dims.breaking(each)]
        tried |= {tuple(sizes.items()): sizes for sizes in found}
    if len(tried) > _MOST:
        return made, []
    kept = tuple(guard for guard in made.guards.made if id(guard) not in answers)
    allowing = dataclasses.replace(made, guards=dataclasses.replace(made.guards, made=kept))
    return allowing, [dims.request_of(sizes) for sizes in tried.values()]


class _Dims:
    """The dims of a request that may vary, and what a capture asked of them, in the symbols of the graph.

    Attributes:
        sizes: The sizes of the example.
        branches: What Python asked.
        required: What operators asked.
    """

    def __init__(self, request: Request, guards: Guards) -> None:
        self._request, self._symbols = request, guards.symbols
        self._dims = (*request.shapes.dynamic, *request.shapes.open)
        replaced = guards.symbols.replaced()
        # NOTE: a symbol that another one replaced is none of the graph's.
        self.sizes = {symbol: size for symbol, size in guards.symbols.sizes(self._dims).items() if symbol not in replaced}
        asked = [(guard, guard.relation.xreplace(replaced)) for guard in guards.made]
        known = [(guard, each) for guard, each in asked if each.free_symbols and each.free_symbols <= self.sizes.keys()]
        self.branches = [(guard, each) for guard, each in known if is_branch(guard)]
        self.required = {each for guard, each in known if not is_branch(guard)}

    def allow(self, sizes: Sizes) -> bool:
        """Whether all dims may have these sizes."""
        return all(dim.allows(size) for dim, size in self._symbols.resized(self._dims, sizes).items())

    def request_of(self, sizes: Sizes) -> Request:
        """The request with these sizes."""
        resized = self._symbols.resized(self._dims, sizes)
        return with_sizes(self._request, {dim: size for dim, size in resized.items() if size != dim.size})

    def exceptions(self, relation: sympy.Basic) -> Iterator[Sizes]:
        """Sizes near the example's for which `relation`, an inequality, is false, and true for slightly larger or smaller ones."""
        if not isinstance(relation, sympy.Ne):
            return
        if holds(relation, self.sizes) is False:
            yield self.sizes
        for symbol in sorted(relation.free_symbols, key=str):
            for others, most in zip(_near(self.sizes[symbol]), (1, _ABOVE), strict=True):
                for ends in itertools.islice(self._exceptions(relation, symbol, others), most):
                    yield from ({**self.sizes, symbol: other} for other in sorted(ends))

    def breaking(self, relation: sympy.Basic) -> Iterator[Sizes]:
        """The next smaller and the next larger size for which `relation` is false."""
        for symbol in sorted(relation.free_symbols, key=str):
            for others in _near(self.sizes[symbol]):
                tried = ({**self.sizes, symbol: other} for other in others)
                yield from itertools.islice((each for each in tried if holds(relation, each) is False and self.allow(each)), 1)

    def _exceptions(self, relation: sympy.Basic, symbol: sympy.Basic, others: Sequence[int]) -> Iterator[set[int]]:
        """The first and the last size of each few in a row for which `relation` is false."""
        before, few = False, list[int]()
        for other in others:
            sizes = {**self.sizes, symbol: other}
            if not self.allow(sizes):
                continue
            if (now := holds(relation, sizes)) is True:
                if before and 0 < len(few) <= _FEW:
                    yield {few[0], few[-1]}
                before, few = True, []
            elif now is False:
                few.append(other)


def _near(size: int) -> tuple[range, range]:
    """The sizes below and above `size`, from it on."""
    return range(size - 1, max(1, size - _FAR), -1), range(size + 1, size + _FAR)
