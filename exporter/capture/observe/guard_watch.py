"""Watches torch's symbolic shapes, with the user's stack: torch names no line, and reports only at the end that a dim is constant."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sympy

from onnxplain.diagnostics import Location
from onnxplain.source import locations
from onnxplain.torch_internals import dynamo, empty_examples, shape_env
from onnxplain.torch_internals.symbolic_expressions import plainer

from .dim_symbols import DimSymbols
from .frames import Frames, Site
from .guards import Guard, Guards
from .replays import Call


class GuardWatch:
    """Collects the decisions of torch's shape environments in this thread.

    Args:
        frames: Where the capture is.
        restarts: Whether the capture may start again with a new environment, so that the last one counts. Otherwise the first one counts:
            further ones are those of functions inside the model, such as the body of a `while_loop`.
    """

    def __init__(self, frames: Frames, *, restarts: bool) -> None:
        self._frames = frames
        self._restarts = restarts
        self._environment: Any = None
        self._made: list[Guard] = []
        self._assumed: list[Site] = []
        self._unlike_example: list[Guard] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watches all shape environments of this thread. If torch lacks one of these methods, findings lose their line."""
        with (
            shape_env.observed(shape_env.SIZE_MADE, self._begin),
            shape_env.observed(shape_env.GUARD_MADE, self._log_guard),
            shape_env.observed(shape_env.SIZE_REPLACED, self._log_replacement),
            empty_examples.taken_for_full(self._log_unlike_example),
            shape_env.observed(shape_env.DATA_ASSUMED, lambda *_: self._assumed.append(self._frames.site())),
        ):
            yield

    def guards(self) -> Guards:
        """The decisions so far."""
        return Guards(
            DimSymbols(self._environment),
            tuple(self._made),
            tuple(self._assumed),
            self._frames.arrays(),
            self._frames.inferred(),
            tuple(self._unlike_example),
            self._frames.read_inputs(),
        )

    def _begin(self, environment: Any, *_: Any) -> None:
        # NOTE: there may be no guard at all.
        self._environment = self._environment or environment

    def _log_guard(self, environment: Any, purpose: str, relation: sympy.Basic, *_: Any) -> None:
        # NOTE: the graph does not assume the relations that torch asks for internally, for example about the strides of a fake tensor.
        if "suppressed" not in purpose:
            is_number = isinstance(relation, sympy.Eq) and any(side.is_number for side in relation.args)
            makes_number = is_number and self._frames.operator_makes_number()
            self._note(environment, relation, self._frames.operator(), makes_number)

    def _log_unlike_example(self) -> None:
        stack, interpreted = self._stacks()
        if interpreted or self._frames.python_asks():
            self._unlike_example.append(Guard(sympy.true, (*stack, *interpreted), asked_by_python=True, interpreted=bool(interpreted)))

    def _stacks(self) -> tuple[tuple[Location, ...], tuple[Location, ...]]:
        """The frames outside torch, and those that TorchDynamo interprets."""
        return self._frames.stack(), tuple(map(locations.summarized, dynamo.interpreted_stack()))

    def _log_replacement(self, environment: Any, symbol: sympy.Symbol, target: sympy.Basic, *_: Any) -> None:
        self._note(environment, sympy.Eq(symbol, target))

    def _note(self, environment: Any, relation: sympy.Basic, operator: Call | None = None, makes_number: bool = False) -> None:
        if self._restarts or self._environment is None:
            self._environment = environment
        if environment is not self._environment:
            return
        stack, interpreted = self._stacks()
        site = self._frames.site() if isinstance(relation, sympy.Eq) and any(side.is_Integer for side in relation.args) else None
        asked_by_python, relation = self._frames.python_asks(), plainer(relation)
        self._made.append(Guard(relation, (*stack, *interpreted), asked_by_python, operator, bool(interpreted), site, makes_number))
