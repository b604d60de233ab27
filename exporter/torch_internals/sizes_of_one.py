"""Computed sizes that are 1 for the example: what one operator asks about them, torch takes for granted in others."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import sympy

from . import python_frames, shape_env, torch_frames
from .operators import OpOverload, schema
from .patching import Slot, wrapped
from .symbolic_expressions import at, remainders
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/symbolic_shapes.py: for each new guard, torch keeps what `get_implications` says
# that follows from it, and decides later questions by that.
_IMPLIED = Symbol(
    "torch.fx.experimental.symbolic_shapes:ShapeEnv.get_implications",
    without="a computed size that is 1 for the example may be 1 in the model for all sizes",
)
_RESHAPES = frozenset({"aten::flatten", "aten::reshape", "aten::reshape_as", "aten::unflatten", "aten::view", "aten::view_as"})
_DEPTH = 60
"""How many frames there are at most between an operator and the question that it asks."""


@contextlib.contextmanager
def not_taken_for_granted() -> Iterator[None]:
    """While it is open, that a computed size is 1, which a reshape asked for, answers no question of another operator.

    A reshape asks only to find out whether its result may be a view, and is right for all sizes. An addition after it would broadcast, and
    return 1 for the size.
    """
    if not _IMPLIED.is_present:
        yield
        return

    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def implied(original: Callable[..., Any], environment: Any, relation: sympy.Basic) -> Any:
        dropped = _says_one(relation, shape_env.examples(environment)) and _is_asked_by_reshape()
        return () if dropped else original(environment, relation)

    with wrapped(Slot(ShapeEnv, _IMPLIED.name), implied):
        yield


def _says_one(relation: sympy.Basic, example: dict[sympy.Symbol, int]) -> bool:
    """Whether a relation says that a computed size of inputs is 1, or that each factor of a product is."""
    if not isinstance(relation, sympy.Eq) or not relation.free_symbols <= example.keys():
        return False
    number, size = sorted(relation.args, key=lambda side: not side.is_Integer)
    if not number.is_Integer or size.is_Symbol or size.has(*remainders()):
        return False
    # NOTE: torch writes `n // 32 + 1 == 1` as `n // 32 == 0`.
    return bool(number == 0) or all(at(each.as_content_primitive()[1], example) == 1 for each in sympy.Mul.make_args(size))


def _is_asked_by_reshape() -> bool:
    frames = itertools.islice(python_frames.outward(python_frames.current()), _DEPTH)
    calling = next(filter(None, map(torch_frames.operator_at_work, frames)), None)
    return calling is not None and isinstance(calling[0], OpOverload) and schema(calling[0]).name in _RESHAPES
