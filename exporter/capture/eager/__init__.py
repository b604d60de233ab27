"""Eager runs of a copy of the model: its result or exception, and the value of an expression at a line."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import types
from collections.abc import Iterable
from typing import Any

import torch

from onnxplain import process
from onnxplain.capture.observe.attributes import Attributes
from onnxplain.capture.observe.frames import stoppable
from onnxplain.diagnostics import DiagnosticContext, Location
from onnxplain.process import Budget, BudgetSpent, Stopped
from onnxplain.request import Request
from onnxplain.source import locations
from onnxplain.torch_internals import dynamo, python_frames, pytree
from onnxplain.torch_internals.python_values import is_a

from .copies import Copies

Question = tuple[str, int, str]
"""File, line, and an expression to evaluate there."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        result: The model's return value.
        error: The exception that it raised.
        seconds: The work that it took, in seconds.
        model: The copy that ran.
        inputs: The inputs that it ran with, as it left them.
        calls: The calls between functions, as pairs of caller and callee by their code, without functions of torch and Python in between.
    """

    result: Any
    error: Exception | None
    seconds: float
    model: Any
    inputs: Any = ()
    calls: frozenset[tuple[types.CodeType | None, types.CodeType]] = frozenset()


class EagerRuns:
    """Runs the model of an export as often as a budget allows, always with the same random numbers.

    Each run has copies of the modules, their buffers and the inputs, so that the user's objects do not change.

    Args:
        context: Gets torch's warnings and prints as events.
        request: The export.
        budget: How often and how long the model may run.

    Attributes:
        request: The export.
    """

    def __init__(self, context: DiagnosticContext, request: Request, budget: Budget) -> None:
        self._context = context
        self.request = request
        self._answers: dict[Question, bool | None] = {}
        self.budget = budget

    @functools.cached_property
    def baseline(self) -> Outcome | None:
        """The run of the unchanged model; None if no run is allowed, or if it was stopped."""
        calls: dict[tuple[int, int], tuple[types.CodeType | None, types.CodeType]] = {}

        def on_line(frame: types.FrameType, event: str) -> None:
            if event == "call":
                caller = python_frames.caller_outside(frame, locations.is_internal)
                edge = (None if caller is None else caller.f_code, frame.f_code)
                calls.setdefault((id(edge[0]), id(edge[1])), edge)

        with python_frames.each_line(on_line, lambda file: not locations.is_internal(file)):
            outcome = self._run_unchanged()
        return None if outcome is None else dataclasses.replace(outcome, calls=frozenset(calls.values()))

    @property
    def module(self) -> torch.nn.Module | None:
        """The unchanged copy that ran, if the model is a module and not a function."""
        model = None if self.baseline is None else self.baseline.model
        return model if isinstance(model, torch.nn.Module) else None

    def error(self) -> Exception | None:
        """The exception that the model raises; None if it raises none, or if that is not known."""
        if self.baseline is None or self.baseline.error is None:
            return None
        # NOTE: a model that differentiates within `forward` fails without gradients only.
        differentiating = self._run_unchanged(gradients=True) if torch.is_grad_enabled() else None
        return None if differentiating is not None and differentiating.error is None else self.baseline.error

    def _run_unchanged(self, *, gradients: bool = False) -> Outcome | None:
        # NOTE: where `torch.cond` compiles its branches, it refuses some that it would run.
        return self.run(Copies().of(self.request.model), gradients=gradients, compiles=True)

    def run(self, model: Any, most: float = math.inf, *, gradients: bool = False, compiles: bool = False) -> Outcome | None:
        """Runs a copy of the model.

        Args:
            model: The copy.
            most: The seconds that it may take.
            gradients: Whether operators record what their gradients need.
            compiles: Whether loops and branches are compiled, as in eager mode, which takes long.

        Returns:
            The outcome; None if the run was stopped, or if no run is left.
        """
        args, kwargs = pytree.map_tensors(torch.clone, (self.request.args, dict(self.request.kwargs)))
        attributes, stopwatch = _attributes(model), process.Stopwatch()
        result, error = None, None
        try:
            with (
                process.exits_as_errors(locations.is_users),
                process.kept(self._context, locations.user_speaks),
                self.budget.one(stoppable, most),
                torch.set_grad_enabled(gradients),
                process.random_numbers_kept(seed=0),
                process.gpu_assertions_raised(),
                contextlib.nullcontext() if compiles else dynamo.uncompiled(),
            ):
                result = model(*args, **kwargs)
        except BudgetSpent:
            return None
        except Stopped as stopped:
            self._context.event(f"A run of the model was stopped: {stopped}.")
            return None
        except Exception as raised:  # noqa: BLE001  the user's model runs here, and may raise anything
            error = raised
        finally:
            # NOTE: this restores global lists, dicts and sets of the modules' files: only edited functions have copies of them.
            attributes.put_back()
        return Outcome(result, error, stopwatch.seconds, model, (args, kwargs))

    def holds(self, place: Location, test: str) -> bool | None:
        """As `truth_of`, for a place."""
        return None if place.line is None else self.truth_of(place.file, place.line, test)

    def truth_of(self, file: str, line: int, test: str) -> bool | None:
        """The truth of the expression `test` when the example first reaches that line; None if it never does, or if `test` raises."""
        self.ask([(file, line, test)])
        return self._answers.get((file, line, test))

    def always(self, file: str, line: int, test: str) -> bool:
        """Whether the expression `test` is true whenever the example reaches that line, which it does."""
        answers = list[bool | None]()

        def on_line(frame: types.FrameType, event: str) -> None:
            if event == "line" and frame.f_lineno == line and frame.f_code.co_filename == file:
                answers.append(_truth(test, frame))

        with python_frames.each_line(on_line, lambda each: each == file):
            self._run_unchanged()
        return bool(answers) and all(answers)

    def ask(self, questions: Iterable[Question]) -> None:
        """Runs the model once for all new `questions`."""
        new = [question for question in questions if question not in self._answers]
        files = {file for file, _, _ in new}

        def on_line(frame: types.FrameType, event: str) -> None:
            for question in new if event == "line" else ():
                file, line, test = question
                if frame.f_lineno == line and frame.f_code.co_filename == file and question not in self._answers:
                    self._answers[question] = _truth(test, frame)

        if new:
            with python_frames.each_line(on_line, lambda file: file in files):
                self._run_unchanged()
            self._answers.update({question: None for question in new if question not in self._answers})

    def watched(self, by: contextlib.AbstractContextManager[object]) -> None:
        """Runs the model once within a context manager."""
        with by:
            self._run_unchanged()


def _attributes(model: Any) -> Attributes:
    return Attributes(model if isinstance(model, torch.nn.Module) else torch.nn.Module())


def _truth(test: str, frame: types.FrameType) -> bool | None:
    try:
        return bool(python_frames.evaluate(test, frame))
    except Exception:  # noqa: BLE001  the test is the user's expression, and may raise anything
        return None


def same_results(before: object, after: object) -> bool:
    """Whether two results of the model are equal, up to rounding."""
    try:
        torch.testing.assert_close(_leaves(after), _leaves(before), equal_nan=True)
    except Exception:  # noqa: BLE001  assert_close raises several types, and results may be the user's own classes
        return False
    return True


def _leaves(result: object) -> list[object]:
    # NOTE: eager torch.while_loop turns the numbers that it carries into tensors.
    return [torch.as_tensor(leaf) if is_a(leaf, torch.Tensor, int, float) else str(leaf) for leaf in pytree.tree_leaves(result)]
