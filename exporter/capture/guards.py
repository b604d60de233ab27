"""Who froze a dim, and which data a capture had to know: torch's symbolic shapes watched at work, with the user's stack.

torch says only at the end that a dim is a constant, without the line. A guard is what it assumes of sizes from a line on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sympy
import torch
from torch.fx.experimental import symbolic_shapes

from onnxplain import where
from onnxplain.diagnostics import Location

from .frames import Frames, Site
from .inputs import DynamicDim
from .limits import Limit, limit_of

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/symbolic_shapes.py and _guards.py.
_SHAPE_ENVIRONMENT: Any = getattr(symbolic_shapes, "ShapeEnv", None)
_TRACING_CONTEXT: Any = getattr(torch._guards, "TracingContext", None)


@dataclasses.dataclass(frozen=True)
class Guard:
    """A relation between sizes that holds in the graph since a line.

    Attributes:
        relation: The relation, in torch's symbols.
        stack: How the model came there.
        asked_by_python: True if the model's code itself decided by the size, as with `if`; False if an operator checked it.
    """

    relation: sympy.Basic
    stack: tuple[Location, ...]
    asked_by_python: bool


class Guards:
    """What torch's shape environment decided during one capture.

    Attributes:
        made: Every guard, in order.
        assumed: Where the data of the example decided, when the capture ran on real values.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._environment: Any = None
        self.made: list[Guard] = []
        self.assumed: list[Site] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[Guards]:
        """Watches all shape environments. Without one of these private methods the findings only lose their line."""
        # NOTE: `_log_guard` is called for each new guard with the guard second, `_set_replacement` with a symbol and what it equals,
        # `_log_real_tensor_propagation` where draft export goes on with the example's value.
        with (
            _before("_log_guard", lambda environment, _prefix, guard, *_: self._note(environment, guard)),
            _before("_set_replacement", lambda environment, symbol, target, *_: self._note(environment, sympy.Eq(symbol, target))),
            _before("_log_real_tensor_propagation", lambda *_: self.assumed.append(self._frames.site())),
        ):
            yield self

    def constant(self, dim: DynamicDim) -> int | None:
        """The only size that `dim` can still have; None if it is dynamic or nothing is known."""
        # NOTE: `replacements` holds what each symbol equals, `var_to_range` from where to where it goes (torch 2.11 to 2.15).
        symbol = self._symbol(dim)
        known = [getattr(self._environment, "replacements", {}).get(symbol)]
        sizes = getattr(self._environment, "var_to_range", {}).get(symbol)
        if sizes is not None and sizes.lower == sizes.upper:
            known.append(sizes.lower)
        known += [_fixed(guard.relation, symbol) for guard in self.made if guard.asked_by_python]
        return next((int(size) for size in known if size is not None and size.is_Integer), None)

    def varies(self, dim: DynamicDim) -> bool:
        """Whether it is certain that no guard fixes `dim`."""
        symbol = self._symbol(dim)
        return symbol is not None and self.constant(dim) is None and all(_fixed(guard.relation, symbol) is None for guard in self.made)

    def decisive(self, dim: DynamicDim) -> Guard | None:
        """The guard that made `dim` constant; or else the first one that the graph keeps as a check; or else the first about it."""
        symbol = self._symbol(dim)
        # NOTE: where a dim equals another one, guards may be about that one.
        symbols = {symbol, getattr(self._environment, "replacements", {}).get(symbol)}
        about = [guard for guard in self.made if guard.stack and symbols & guard.relation.free_symbols]
        kept = self._asserted()
        return next(
            itertools.chain(
                (guard for guard in about if any(_fixed(guard.relation, each) is not None for each in symbols)),
                (guard for guard in about if guard.relation in kept and not isinstance(guard.relation, sympy.Ne)),
                about,
            ),
            None,
        )

    def fixing(self, dim: DynamicDim) -> Guard | None:
        """The first guard that fixes `dim`, alone or with others as the number of elements in `x.view(3, 4)`; None if none does."""
        symbol = self._symbol(dim)
        about = (guard for guard in self.made if symbol in guard.relation.free_symbols and _is_number(guard.relation))
        return next(iter(sorted(about, key=lambda guard: not guard.stack)), None)

    def asked(self, dims: Iterable[DynamicDim]) -> Iterator[tuple[str, Guard]]:
        """What the model's code decided by the sizes of `dims`, as relations between their places; a relation counts once."""
        places = {symbol: sympy.Symbol(dim.place) for dim in dims if (symbol := self._symbol(dim)) is not None}
        replaced = getattr(self._environment, "replacements", {})
        known = {replaced.get(symbol, symbol): place for symbol, place in reversed(places.items())} | places
        seen: set[sympy.Basic] = set()
        for guard in self.made:
            relation = guard.relation
            if guard.stack and relation not in seen and relation.free_symbols and relation.free_symbols <= known.keys():
                seen.add(relation)
                yield _as_text(relation.xreplace(known)), guard

    def limits(self, dim: DynamicDim, least: int, most: int) -> Iterator[tuple[Limit, Guard]]:
        """What the graph takes for granted about the size of `dim` alone, and `dynamic_shapes` does not say.

        Args:
            dim: The dim.
            least: The least size that it may have.
            most: The largest one.
        """
        symbol = self._symbol(dim)
        for relation in self._asserted():
            if relation.free_symbols == {symbol} and (limit := limit_of(relation, symbol, dim.size, least, most)) is not None:
                exact = (guard for guard in self.made if guard.relation == relation and guard.stack)
                if (guard := next(exact, None) or self.decisive(dim)) is not None:
                    yield limit, guard

    def checks(self) -> Iterator[tuple[sympy.Basic, tuple[Location, ...]]]:
        """The relations between numbers that depend on data which the graph checks when it runs, each with its stack."""
        about_data = self.of_data()
        for relation in self._asserted():
            yield from ((relation, guard.stack) for guard in about_data if guard.relation == relation and guard.stack)

    def of_data(self) -> list[Guard]:
        """The guards about numbers that come from data, and not from the inputs' sizes."""
        sizes = set(getattr(self._environment, "source_to_var", {}).values())
        return [guard for guard in self.made if guard.relation.free_symbols and not guard.relation.free_symbols & sizes]

    def _asserted(self) -> list[sympy.Basic]:
        # NOTE: relations that torch cannot state as a dim's range (torch 2.11 to 2.15).
        return [each.expr for each in itertools.chain.from_iterable(getattr(self._environment, "deferred_runtime_asserts", {}).values())]

    def _note(self, environment: Any, relation: sympy.Basic) -> None:
        # NOTE: TorchDynamo may begin again, with a new environment: the last one counts.
        self._environment = environment
        self.made.append(Guard(relation, (*self._frames.stack(), *_dynamo_stack()), self._frames.python_asks()))

    def _symbol(self, dim: DynamicDim) -> sympy.Symbol | None:
        # NOTE: sources are named `L['x'][0].size()[1]` (non-strict) or `L['flat_args'][3].size()[1]` (TorchDynamo; torch 2.11 to 2.15).
        symbols: dict[str, sympy.Symbol] = getattr(self._environment, "source_to_var", {})
        for source, symbol in symbols.items():
            tensor, _, axis = source.rpartition(".size()")
            if axis == f"[{dim.axis}]" and tensor in (_source(dim.place), f"L['flat_args'][{dim.flat_index}]"):
                return symbol
        return None


@contextlib.contextmanager
def _before(name: str, observer: Callable[..., None]) -> Iterator[None]:
    """Calls `observer` before each call of that method of ShapeEnv."""
    method = getattr(_SHAPE_ENVIRONMENT, name, None)
    if method is None:
        yield
        return

    def observed(*args: Any, **kwargs: Any) -> Any:
        # NOTE: a capture must not fail because an observer met other arguments than it knows.
        with contextlib.suppress(Exception):
            observer(*args)
        return method(*args, **kwargs)

    setattr(_SHAPE_ENVIRONMENT, name, observed)
    try:
        yield
    finally:
        setattr(_SHAPE_ENVIRONMENT, name, method)


def _source(place: str) -> str:
    """`ys['a'][0].shape[1]` as torch names its tensor: `L['ys']['a'][0]`."""
    tensor = place.rpartition(".shape[")[0]
    return re.sub(r"^\w+", lambda parameter: f"L['{parameter[0]}']", tensor)


def _fixed(relation: sympy.Basic, symbol: sympy.Basic | None) -> sympy.Integer | None:
    """The number that `symbol` must be, if that is what `relation` says."""
    if isinstance(relation, sympy.Eq) and symbol in relation.args:
        return next((side for side in relation.args if isinstance(side, sympy.Integer)), None)
    return None


def _is_number(relation: sympy.Basic) -> bool:
    """Whether `relation` says that an expression of sizes is a number. A remainder of 0 leaves many sizes."""
    return isinstance(relation, sympy.Eq) and any(isinstance(side, sympy.Integer) and side > 0 for side in relation.args)


def _as_text(relation: sympy.Basic) -> str:
    if isinstance(relation, sympy.Rel):
        return f"{relation.lhs} {relation.rel_op} {relation.rhs}"
    return str(relation)


def _dynamo_stack() -> Iterator[Location]:
    """The frames that TorchDynamo is interpreting, which are not on Python's stack."""
    extract = getattr(_TRACING_CONTEXT, "extract_stack", None)
    return (where.summarized(frame) for frame in (extract() if extract else ()))
