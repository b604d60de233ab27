"""The decisions of a capture about the sizes of dims, with their lines. A guard is an assumption about sizes from a line on."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

import sympy

from onnxplain.diagnostics import Location
from onnxplain.request import InputDim, Kind
from onnxplain.source import syntax
from onnxplain.torch_internals.operators import OpOverload

from . import size_limits
from .dim_symbols import DimSymbols, as_text
from .frames import Site
from .replays import Call, Sizes
from .size_limits import Limit, holds, limit_of

_TRIES = 4
_NEAR = 32
_DOUBLINGS = 11


@dataclasses.dataclass(frozen=True)
class Guard:
    """A relation between sizes that the graph assumes from a line on.

    Attributes:
        relation: The relation, in torch's symbols.
        stack: The frames at that line.
        asked_by_python: True if the model's code decided by the size, as with `if`; False if an operator checked it.
        operator: The operator that asked for a remainder of a size.
        interpreted: True if TorchDynamo interpreted the model's code, so that Python did not ask.
        site: What Python was doing if the relation fixes a size; None for other guards.
        makes_number: True if an operator made a Python number of the size, as it does with an argument that takes no symbols.
    """

    relation: sympy.Basic
    stack: tuple[Location, ...]
    asked_by_python: bool
    operator: Call | None = None
    interpreted: bool = False
    site: Site | None = None
    makes_number: bool = False


@dataclasses.dataclass(frozen=True)
class Guards:
    """The decisions of torch's shape environment during one capture.

    Attributes:
        symbols: torch's symbols for the sizes of dims.
        made: Every guard, in order.
        assumed: The places where the example's data decided, if the capture ran on real values.
        arrays: The places that made a numpy array of a tensor then.
        inferred: The operators without a fake kernel that ran then, each with the stack of its call.
        unlike_example: The decisions of Python that are not those for the example, since an input of the example is empty.
        read_inputs: The inputs, and before them the weights, that decide the numbers and sizes made from data: their places from the end,
            1 for the last one.
    """

    symbols: DimSymbols
    made: tuple[Guard, ...]
    assumed: tuple[Site, ...]
    arrays: tuple[Site, ...] = ()
    inferred: tuple[tuple[OpOverload, tuple[Location, ...]], ...] = ()
    unlike_example: tuple[Guard, ...] = ()
    read_inputs: tuple[int, ...] = ()

    def constant(self, dim: InputDim) -> int | None:
        """The only size that `dim` can still have; None if it is dynamic or not known."""
        symbol = self.symbols.of(dim)
        known = [None if symbol is None else self.symbols.replaced().get(symbol)]
        bounds = self.symbols.range_of(symbol)
        if bounds is not None and bounds[0] == bounds[1]:
            known.append(bounds[0])
        known += [_fixed(guard.relation, symbol) for guard in self.made if guard.asked_by_python]
        known += [_fixed(relation, symbol) for relation in self.symbols.asserted()]
        return next((int(size) for size in known if size is not None and size.is_Integer), None)

    def varies(self, dim: InputDim) -> bool:
        """Whether it is certain that no guard fixes `dim`."""
        # NOTE: torch replaces a size that the guard of an operator fixes.
        return dim in self.symbols and self.constant(dim) is None

    def decisive(self, dim: InputDim) -> Guard | None:
        """The guard that made `dim` constant; or else the first guard that the graph keeps as a check; or else the first guard about it."""
        symbols, about = self._about(dim)
        kept = self.symbols.asserted()
        return next(
            itertools.chain(
                (guard for guard in about if any(_fixed(guard.relation, each) is not None for each in symbols)),
                (guard for guard in about if guard.relation in kept and not isinstance(guard.relation, sympy.Ne)),
                about,
            ),
            None,
        )

    def excluding(self, dim: InputDim, sizes: Iterable[int]) -> Iterator[Guard]:
        """The guards about `dim` alone that exclude one of `sizes`."""
        symbols, about = self._about(dim)
        excluded = list(sizes)
        for guard in about:
            if any(holds(guard.relation, dict.fromkeys(filter(None, symbols), size)) is False for size in excluded):
                yield guard

    def _about(self, dim: InputDim) -> tuple[set[sympy.Basic | None], list[Guard]]:
        """The symbols of `dim`, and the guards about them that have a line."""
        symbol = self.symbols.of(dim)
        # NOTE: if a dim equals another dim, guards may be about the other one.
        symbols = {symbol, None if symbol is None else self.symbols.replaced().get(symbol)}
        return symbols, [guard for guard in self.made if guard.stack and symbols & guard.relation.free_symbols]

    def each_fixing(self, dim: InputDim) -> Iterator[Guard]:
        """The guards with a line that leave `dim` only the size that it has in the example."""
        symbol = self.symbols.of(dim)
        for guard in self.made:
            relation = guard.relation
            if guard.stack and relation.free_symbols == {symbol} and isinstance(relation, sympy.Eq):
                near = (each[symbol] for each in (*larger(symbol, {symbol: dim.size}), *smaller(symbol, {symbol: dim.size})))
                if all(holds(relation, {symbol: size}) is False for size in near):
                    yield guard

    def fixing(self, dim: InputDim) -> Guard | None:
        """The first guard that fixes `dim`, alone or together with other dims, as in `x.view(3, 4)`; None if none does."""
        symbol = self.symbols.of(dim)
        # NOTE: the number of parts of a split is checked in the graph, which may use only some of them.
        about = (
            guard
            for guard in self.made
            if symbol in guard.relation.free_symbols
            and _is_number(guard.relation)
            and not (guard.operator is not None and guard.operator.counts)
        )
        return next(iter(sorted(about, key=lambda guard: not guard.stack)), None)

    def broadcast(self, dims: Sequence[InputDim]) -> dict[InputDim, Guard]:
        """Those of `dims` with another size by a guard than in the example, which therefore ended the capture."""
        # NOTE: a capture treats size 1 in the example as any size, and requires it to equal the other tensor's; eager mode broadcasts it.
        sizes = self.symbols.sizes(dims)
        found: dict[InputDim, Guard] = {}
        for guard in self.made:
            if holds(guard.relation, sizes) is False:
                related = self.symbols.places([guard.relation], dims)
                # NOTE: size 1 may also be computed from a size, as that of the last part in `x.split(3)`.
                for dim in [dim for dim in related if dim.size == 1] or related:
                    found.setdefault(dim, guard)
        return found

    def contradict(self, dims: Sequence[InputDim]) -> bool:
        """Whether a guard is false for the example's sizes, those of 1 aside: torch did not ask the example."""
        own = {symbol: dim.size for dim in dims if (symbol := self.symbols.of(dim)) is not None}
        sizes = {**self.symbols.sizes(dims), **own}
        about = (guard.relation for guard in self.made if guard.relation.free_symbols <= sizes.keys())
        return any(all(sizes[symbol] > 1 for symbol in each.free_symbols) and holds(each, sizes) is False for each in about)

    def decided(self, guard: Guard, dims: Sequence[InputDim], counted: Container[object]) -> bool:
        """Whether the operator that made `guard` also takes other sizes of `dims`, and then returns what the graph does not.

        Most operators, such as `view`, refuse other sizes, so the graph need not be right for them. The shapes of the results tell, but not
        where the graph has a number that is computed from a size: that may be a dim, a power, a number of digits.

        Args:
            guard: The guard.
            dims: Every dim that may vary.
            counted: The operators whose number of results does not matter.
        """
        if guard.operator is None:
            return False
        sizes = self.symbols.sizes(dims)
        relation = guard.relation.xreplace(self.symbols.replaced())
        symbols = relation.free_symbols & sizes.keys()
        if guard.makes_number:
            return any(map(guard.operator.may_take, self._allowed(relation, sizes, dims)))
        if isinstance(relation, sympy.Eq) and 1 in relation.args and guard.operator.relies_on_ones:
            return any(map(guard.operator.takes, self._allowed(relation, sizes, dims)))
        excluded = _excluded(relation, sizes, self.alike(dims)) or self._excluded_ones(relation, sizes, dims)
        if not excluded:
            return False
        # NOTE: `other_sizes` tells limits of single dims.
        if guard.operator.counts and guard.operator.operator in counted and len(symbols) == 1:
            parts = guard.operator.parts(sizes)
            excluded = [each for each in excluded if guard.operator.parts(each) == parts]
        returned = guard.operator.symbolic()
        return any(guard.operator.differs(returned, each) and not self._is_refused_before(guard, each) for each in excluded)

    def _is_refused_before(self, guard: Guard, sizes: Sizes) -> bool:
        """Whether an operator before that of `guard` refuses `sizes`, such as a convolution whose kernel is larger than its input."""
        before = itertools.takewhile(lambda each: each is not guard, self.made)
        asked = (each for each in before if each.operator is not None and holds(each.relation, sizes) is False)
        return any(each.operator is not None and not each.operator.takes(sizes) for each in asked)

    def _excluded_ones(self, relation: sympy.Basic, sizes: Sizes, dims: Sequence[InputDim]) -> list[Sizes]:
        """Sizes that dims may have and for which a limit, such as `n >= 2`, is false, if these are of size 1 alone."""
        if not isinstance(relation, sympy.Le | sympy.Lt | sympy.Ge | sympy.Gt):
            return []
        tried = [{**sizes, symbol: 1} for dim in dims if dim.allows(1) and (symbol := self.symbols.of(dim)) in relation.free_symbols]
        return [each for each in tried if holds(relation, each) is False]

    def alike(self, dims: Sequence[InputDim]) -> dict[sympy.Basic, set[sympy.Basic]]:
        """For each symbol of the graph, those of the dims with the same name, which have one size."""
        named: dict[str, set[sympy.Basic]] = {}
        for dim in dims:
            if len(own := self._symbols_of(dim)) == 1:
                named.setdefault(dim.name, set()).update(own)
        return {symbol: symbols for symbols in named.values() for symbol in symbols}

    def _allowed(self, relation: sympy.Basic, sizes: Sizes, dims: Sequence[InputDim]) -> Iterator[Sizes]:
        """Sizes that `dims` may have and for which `relation` is false."""
        known = {symbol: dim for dim in dims if (symbol := self.symbols.of(dim)) is not None}
        for excluded in _excluded_each_way(relation, sizes):
            own = {symbol: excluded[symbol] for symbol in relation.free_symbols}
            # NOTE: an operator may take this size only where other dims have it as well, such as those of square matrices.
            tried = (excluded, {**dict.fromkeys(sizes, max(own.values())), **own})
            yield from (each for each in tried if all(dim.allows(each[symbol]) for symbol, dim in known.items()))

    def equations(self, dims: Sequence[InputDim], *, all_of_them: bool = False) -> Iterator[tuple[sympy.Basic, list[InputDim], Guard]]:
        """The equations between sizes that an operator of the model requires, such as `linear` after a `flatten`.

        Those that leave many sizes of a dim, such as a remainder of 0, count only for a `Dim`, which promises its whole range. Those that
        leave many sizes if all dims grow together, such as that of two equal dims, count only for dims with names, as names differ.

        Args:
            dims: The dims that may vary.
            all_of_them: Whether all equations count.

        Yields:
            The equation, in torch's symbols of the graph; the dims of which it excludes sizes; and the guard.
        """
        sizes, replaced = self.symbols.sizes(dims), self.symbols.replaced()
        stated = self.symbols.stated(dims)
        seen: set[sympy.Basic] = set()
        for guard in self.made:
            relation = guard.relation.xreplace(replaced)
            if guard.operator is None or not guard.stack or relation in seen or not _is_equation(relation):
                continue
            seen.add(relation)
            if not relation.free_symbols <= sizes.keys() or is_identity(relation.xreplace(stated)):
                continue
            wrong: dict[InputDim, list[Sizes]] = {}
            for dim in self.symbols.places([relation], dims):
                # NOTE: dims of one name have one size.
                same = [each for other in dims if other.name == dim.name for each in self._symbols_of(other) & sizes.keys()]
                if same and (all_of_them or dim.kind is Kind.DIM or _leaves_few(relation, sizes, same)):
                    tried = (
                        each
                        for each in _grown(same, sizes)
                        if all(dim.allows(size) for dim, size in self.symbols.resized(dims, each).items())
                    )
                    wrong[dim] = list(itertools.islice((each for each in tried if holds(relation, each) is False), _TRIES))
            related = [dim for dim, excluded in wrong.items() if excluded]
            are_named = any(dim.kind in (Kind.NAMED, Kind.DIM) for dim in related)
            if not (all_of_them or are_named or _leaves_few(relation, sizes, relation.free_symbols)):
                continue
            # NOTE: torch also asks, for a `view`, which of its dims stay; such a guard excludes sizes that the operator takes.
            if related and guard.operator.takes(sizes) and not any(map(guard.operator.takes, itertools.chain(*wrong.values()))):
                yield relation, related, guard

    def _symbols_of(self, dim: InputDim) -> set[sympy.Basic]:
        """The symbols of the graph from which the size of `dim` is computed."""
        symbol = self.symbols.of(dim)
        found: set[sympy.Basic] = set() if symbol is None else self.symbols.expression(symbol).free_symbols
        return found

    def asked(self, names: Mapping[InputDim, str], others: Mapping[InputDim, str]) -> Iterator[tuple[str, Guard]]:
        """The decisions by the sizes of dims, as relations between their names; a relation counts once.

        Args:
            names: Dims with their names. Each relation is about at least one of them.
            others: Further dims that relations may be about.
        """
        own, known = self.symbols.named(names), self.symbols.named({**others, **names})
        # NOTE: a Dim such as `2 * half` promises the relations that are true for each `half`.
        derived = {symbol: target for symbol, target in self.symbols.replaced().items() if not target.is_Atom}
        seen: set[sympy.Basic] = set()
        for guard in self.made:
            relation = guard.relation
            if (
                guard.stack
                and relation not in seen
                and relation.free_symbols & own.keys()
                and relation.free_symbols <= known.keys()
                and relation.xreplace(derived) != sympy.true
                and relation.xreplace(known) != sympy.true
            ):
                seen.add(relation)
                yield as_text(relation.xreplace(known)), guard

    def limits(self, dim: InputDim, least: int, most: int) -> Iterator[tuple[Limit, Guard]]:
        """The limits that the graph assumes for the size of `dim` alone, and that `dynamic_shapes` does not state.

        Args:
            dim: The dim.
            least: The least size that it may have.
            most: The largest size that it may have.
        """
        symbol = self.symbols.of(dim)
        smaller_sizes = [{symbol: size} for size in range(max(least, 2), dim.size)]
        for relation in self.symbols.asserted():
            if relation.free_symbols != {symbol} or (limit := limit_of(relation, symbol, dim.size, least, most)) is None:
                continue
            exact = [guard for guard in self.made if guard.relation == relation and guard.stack]
            # NOTE: a branch may also exclude smaller sizes, which a limit does not tell; `asked` has the whole relation.
            if any(guard.asked_by_python for guard in exact) and any(holds(relation, each) is False for each in smaller_sizes):
                continue
            if (guard := next(iter(exact), None) or self.decisive(dim)) is not None:
                yield self._with_least(limit, guard, symbol, smaller_sizes), guard

    def is_partial(self, limit: Limit, guard: Guard, dim: InputDim) -> bool:
        """Whether other guards at the line of `guard` exclude sizes of `dim` that `limit`, which it makes, allows."""
        symbol = self.symbols.of(dim)
        relations = [each.relation for each in self.made if each.stack[-1:] == guard.stack[-1:] and each.relation.free_symbols == {symbol}]
        allowed = [{symbol: size} for size in range(max(dim.least, 2), min(dim.most, _NEAR) + 1) if limit.allows(size)]
        return any(holds(relation, sizes) is False for relation in relations for sizes in allowed)

    def _with_least(self, limit: Limit, guard: Guard, symbol: sympy.Symbol | None, smaller: Sequence[Sizes]) -> Limit:
        """`limit` with the least size for which Python takes the same way at the line of `guard`, if it tells the largest only."""
        if limit.most is None or limit.least is not None or not guard.asked_by_python:
            return limit
        asked = [each for each in self.made if each.stack[-1:] == guard.stack[-1:] and each.relation.free_symbols == {symbol}]
        excluded = [size for sizes in smaller for size in sizes.values() if any(holds(each.relation, sizes) is False for each in asked)]
        return dataclasses.replace(limit, least=max(excluded) + 1) if excluded else limit

    def checks(self) -> Iterator[tuple[sympy.Basic, tuple[Location, ...]]]:
        """The relations between data-dependent numbers that the graph checks when it runs, each with its stack."""
        sizes = self.symbols.all()
        for relation in self.symbols.asserted():
            if not size_limits.may_fail(relation) or not relation.free_symbols - sizes:
                continue
            # NOTE: beside an input's size, a number from data is an index or a part of a shape, unless it equals the size. The model's
            # operator also refuses a wrong one, unless a `try` in the user's code catches that.
            equals = isinstance(relation, sympy.Eq) and any(side.is_Symbol and side not in sizes for side in relation.args)
            alone = equals or not relation.free_symbols & sizes
            made = (guard.stack for guard in self.made if guard.relation == relation and guard.stack)
            yield from ((relation, stack) for stack in made if alone or syntax.catches_refusals(stack[-1]))


def larger(symbol: sympy.Basic, sizes: Sizes) -> Iterator[dict[sympy.Basic, int]]:
    """`sizes` with larger sizes of `symbol`: the nearest ones, then some at growing distances."""
    size = sizes[symbol]
    further = (size << doublings for doublings in range(1, _DOUBLINGS))
    return ({**sizes, symbol: other} for other in dict.fromkeys((*range(size + 1, size + _NEAR + 1), *further)))


def smaller(symbol: sympy.Basic, sizes: Sizes) -> Iterator[dict[sympy.Basic, int]]:
    """As `larger`, with smaller sizes down to 2. Size 1 is special to torch."""
    size = sizes[symbol]
    further = (size >> halvings for halvings in range(1, 11) if 2 <= size >> halvings < size - _NEAR)
    return ({**sizes, symbol: other} for other in itertools.chain(range(size - 1, max(size - _NEAR - 1, 1), -1), further))


def _fixed(relation: sympy.Basic, symbol: sympy.Basic | None) -> sympy.Integer | None:
    """The number that `symbol` must be by `relation`; None if it may be another one."""
    if isinstance(relation, sympy.Eq) and symbol in relation.args:
        return next((side for side in relation.args if isinstance(side, sympy.Integer)), None)
    return None


def _excluded(relation: sympy.Basic, sizes: Sizes, alike: Mapping[sympy.Basic, Collection[sympy.Basic]]) -> list[Sizes]:
    """Sizes for which `relation` is false, near those of the example; one name's symbols, which `alike` lists for each, have one size."""
    symbols = relation.free_symbols & sizes.keys()
    alone = (
        {**each, **dict.fromkeys(alike.get(symbol, ()), each[symbol])}
        for symbol in symbols
        for each in (*larger(symbol, sizes), *smaller(symbol, sizes))
    )
    # NOTE: a product of sizes may stay even whichever of them varies alone.
    together = ({**sizes, **{symbol: sizes[symbol] + more for symbol in symbols}} for more in range(1, _NEAR))
    others = itertools.chain(alone, together if len(symbols) > 1 else ())
    return list(itertools.islice((each for each in others if holds(relation, each) is False), _TRIES))


def _excluded_each_way(relation: sympy.Basic, sizes: Sizes) -> Iterator[Sizes]:
    """Sizes for which `relation` is false: larger ones, smaller ones down to 1, and those of all dims together."""
    symbols = relation.free_symbols & sizes.keys()
    ways = [way for symbol in symbols for way in (larger(symbol, sizes), (*smaller(symbol, sizes), {**sizes, symbol: 1}))]
    for way in (*ways, _grown(symbols, sizes)):
        yield from itertools.islice((each for each in way if holds(relation, each) is False), _TRIES)


def _grown(symbols: Collection[sympy.Basic], sizes: Sizes) -> Iterator[Sizes]:
    """`sizes` with other sizes of `symbols`, which grow or shrink together."""
    least = min(sizes[symbol] for symbol in symbols)
    for more in itertools.chain(range(1, _NEAR + 1), range(-1, max(1 - least, -_NEAR), -1)):
        yield {**sizes, **{symbol: sizes[symbol] + more for symbol in symbols}}
    yield from _doubled(symbols, sizes)


def _doubled(symbols: Collection[sympy.Basic], sizes: Sizes) -> Iterator[Sizes]:
    return ({**sizes, **{symbol: sizes[symbol] << times for symbol in symbols}} for times in range(1, _DOUBLINGS))


def is_identity(relation: sympy.Basic) -> bool:
    """Whether `relation` holds for all sizes, such as `n*(m - 1) == m*n - n`."""
    return relation == sympy.true or (isinstance(relation, sympy.Eq) and sympy.expand(relation.lhs - relation.rhs) == 0)


def _is_equation(relation: sympy.Basic) -> bool:
    """Whether `relation` says that a computed size equals another one or a number. One that equals the size of another dim goes with it."""
    if not isinstance(relation, sympy.Eq):
        return False
    return not any(one.is_Symbol and one not in other.free_symbols for one, other in itertools.permutations(relation.args))


def _leaves_few(relation: sympy.Basic, sizes: Sizes, symbols: Collection[sympy.Basic]) -> bool:
    """Whether `relation` is false for doubled sizes of `symbols`, for these sizes doubled again, and so on, and for halved ones."""
    # NOTE: halved as well, since an upper bound is false for all doubled sizes, and yet leaves many.
    halved = [{**sizes, **{symbol: sizes[symbol] >> times for symbol in symbols}} for times in range(1, _DOUBLINGS)]
    smaller_sizes = (each for each in halved if all(each[symbol] > 1 for symbol in symbols))
    return not any(holds(relation, each) for each in itertools.chain(_doubled(symbols, sizes), smaller_sizes))


def _is_number(relation: sympy.Basic) -> bool:
    """Whether `relation` says that an expression of sizes is a number. A remainder of 0 leaves many sizes."""
    return isinstance(relation, sympy.Eq) and any(isinstance(side, sympy.Integer) and side > 0 for side in relation.args)
