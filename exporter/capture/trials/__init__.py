"""Tries edits of the model's source before they are offered: runs and captures a copy of the model with the edited functions."""

from __future__ import annotations

import ast
import dataclasses
import enum
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from onnxplain import process
from onnxplain.capture import strategies
from onnxplain.capture.eager import EagerRuns, Outcome, same_results
from onnxplain.capture.eager.copies import Copies
from onnxplain.capture.explain import assumptions, data_dependence, narrowing
from onnxplain.capture.finding import Finding, module_of
from onnxplain.capture.observe.frames import Frames, stoppable
from onnxplain.capture.observe.guard_watch import GuardWatch
from onnxplain.capture.observe.guards import Guards
from onnxplain.capture.observe.program_sizes import constant_dims
from onnxplain.capture.strategies import CaptureStrategy, as_module
from onnxplain.diagnostics import Confidence, DiagnosticContext, Edit, Fix, Location, chain
from onnxplain.process import BudgetSpent, Stopped
from onnxplain.request import Request
from onnxplain.rules import SpecializedDynamicDim
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import python_frames
from onnxplain.torch_internals.code_objects import key_of

from . import edited_code

_UNTRIED = "onnxplain did not try this fix."
_SLOWER = 10.0
"""How many times longer than the unchanged model an edited one may take, but at least `_LEAST_SECONDS`."""
_LEAST_SECONDS = 5.0


class _Verdict(enum.Enum):
    """What the trial of a fix tells."""

    WORKS = "the model computes the same, and a capture of it goes further"
    DIFFERS = "the model fails, or computes something else"
    STOPS = "a capture does not go further"
    UNTRIED = "the fix could not be tried"


class Trials:
    """Tries the fixes of findings one after another, as long as the budget allows.

    Args:
        context: Gets torch's warnings and prints as events.
        request: The export.
        runs: The eager runs of the model.
        before: Edits that are part of every trial.
    """

    def __init__(self, context: DiagnosticContext, request: Request, runs: EagerRuns, before: Sequence[Edit] = ()) -> None:
        self._before = before
        self._working: set[tuple[Edit, ...]] = set()
        self._context = context
        self._request = request
        self._runs = runs

    def tested(self, finding: Finding) -> Finding:
        """`finding` with the edits that let a capture go further and do not change the model's result.

        An edit that does not work is offered as code to look at, unless it changes the result and there is another fix. An edit that could
        not be tried is offered as a guess that says so. Of several edits that say the same and work, the first is offered as a guess.
        """
        if finding.final:
            # NOTE: the unchanged model does not run, so there is no result to compare with.
            return finding
        fixes: list[Fix] = []
        proved: dict[str, int] = {}
        for fix in finding.fixes:
            if not _is_about(finding, fix.edits):
                fixes.append(fix)
                continue
            verdict = self._verdict(finding, fix.edits)
            if fix.description in proved:
                # NOTE: of equal numbers, for example, the example does not tell which one is the size.
                if verdict is not _Verdict.STOPS and verdict is not _Verdict.DIFFERS:
                    first = proved[fix.description]
                    fixes[first] = dataclasses.replace(fixes[first], confidence=Confidence.GUESS)
            elif verdict is _Verdict.UNTRIED:
                fixes.append(dataclasses.replace(fix, description=f"{fix.description} {_UNTRIED}", confidence=Confidence.GUESS))
            elif verdict is _Verdict.WORKS:
                self._working.add(fix.edits)
                proved[fix.description] = len(fixes)
                fixes.append(fix)
            elif "(" in fix.edits[0].replacement and (verdict is _Verdict.STOPS or len(finding.fixes) == 1):
                fixes.append(dataclasses.replace(fix, edits=(), snippet=fix.edits[0].as_snippet(), confidence=Confidence.GUESS))
        return dataclasses.replace(finding, fixes=tuple(fixes))

    def _verdict(self, finding: Finding, edits: Sequence[Edit]) -> _Verdict:
        """Runs and captures a model with `edits`."""
        new = edited_code.of(edited_code.joined(self._before, edits))
        if not new:
            return _Verdict.STOPS
        before = self._runs.baseline
        if before is None or before.error is not None or not self._runs.budget.is_open:
            return _Verdict.UNTRIED
        edited = {code: new[key_of(code)] for _, code in before.calls if key_of(code) in new}
        copied = self._copy(edited, before) if edited else None
        if copied is None:
            return _Verdict.UNTRIED
        ran: set[int] = set()

        def on_line(frame: types.FrameType, event: str) -> None:
            del event
            ran.add(id(frame.f_code))

        file = edits[0].file
        with edited_code.as_exported(edits), python_frames.each_line(on_line, lambda each: each == file):
            most = max(_LEAST_SECONDS, _SLOWER * before.seconds)
            # NOTE: a run that is stopped early, because other runs have used up the time, tells nothing of the edit.
            has_time = self._runs.budget.has(2 * most)
            after = self._runs.run(copied, most)
        if after is None:
            return _Verdict.STOPS if has_time else _Verdict.UNTRIED
        if not ran & {id(code) for code in edited.values()}:
            return _Verdict.UNTRIED
        if after.error is not None or not same_results(before.result, after.result):
            return _Verdict.DIFFERS
        goes_on = self._goes_on(finding, edits, edited, before)
        return _Verdict.UNTRIED if goes_on is None else _Verdict.WORKS if goes_on else _Verdict.STOPS

    def has_proved(self, fix: Fix) -> bool:
        """Whether a trial has shown that `fix` works, and the source shows that it does the same for all inputs."""
        return fix.confidence is Confidence.SAFE and fix.edits in self._working

    def copy(self, edits: Sequence[Edit], *, shares_weights: bool = False) -> Callable[..., Any] | None:
        """A copy of the model with `edits`; None if it cannot be made. One that runs in eager mode must not share the weights."""
        new, before = edited_code.of(edits), self._runs.baseline
        if before is None:
            return None
        return self._copy(
            {code: new[key_of(code)] for _, code in before.calls if key_of(code) in new}, before, shares_weights=shares_weights
        )

    def _copy(
        self, edited: Mapping[types.CodeType, types.CodeType], before: Outcome, *, shares_weights: bool = False
    ) -> Callable[..., Any] | None:
        """A copy of the model with edited functions; None if it cannot be made, for example if an edit uses more outer names."""
        try:
            copies = Copies(edited, _callers(edited, before), **({"weights": 0} if shares_weights else {}))
            copied: Callable[..., Any] = copies.of(self._request.model)
        except Exception:  # noqa: BLE001  the model's classes decide how they are copied, and may raise anything
            return None
        return copied

    def _goes_on(
        self, finding: Finding, edits: Sequence[Edit], edited: Mapping[types.CodeType, types.CodeType], before: Outcome
    ) -> bool | None:
        """Whether a capture passes the edited lines; None if that could not be tried."""
        for name in [name for name in self._request.strategies if not strategies.of(name).is_survey] or ["non-strict"]:
            model = self._copy(edited, before, shares_weights=True)
            try:
                if model is not None and self._passes(finding, edits, as_module(model), strategies.of(name)):
                    return True
            except BudgetSpent:
                return None
        return False

    def _passes(self, finding: Finding, edits: Sequence[Edit], model: torch.nn.Module, strategy: CaptureStrategy) -> bool:
        with Frames() as frames:
            watch = GuardWatch(frames, restarts=strategy.name != strategies.NonStrict.name)
            try:
                with process.kept(self._context, locations.user_speaks), self._runs.budget.one(stoppable, share=1.0), watch.watched():
                    program = strategy(model, self._request, frames)
            except BudgetSpent:
                raise
            except Stopped as stopped:
                # NOTE: the first capture took about as long, so the edit is not to blame.
                raise BudgetSpent from stopped
            except Exception as error:  # noqa: BLE001  the user's model runs here, and may raise anything
                return self._stopped_elsewhere(finding, error, edits, watch.guards())
            frozen = isinstance(finding.rule, SpecializedDynamicDim) and finding.rule.dim
            constant = {dim.name for dim in constant_dims(self._request.shapes, program)}
            return frozen not in constant or self._fixed_elsewhere(finding, edits, watch.guards())

    def _stopped_elsewhere(self, finding: Finding, error: Exception, edits: Sequence[Edit], guards: Guards) -> bool:
        if narrowing.violates(error):
            return not isinstance(finding.rule, SpecializedDynamicDim) or self._fixed_elsewhere(finding, edits, guards)
        if not any(isinstance(each, data_dependence.kinds()) for each in chain(error)):
            return False
        return _is_outside(locations.at_exception(error, module_of(self._request)).location, edits)

    def _fixed_elsewhere(self, finding: Finding, edits: Sequence[Edit], guards: Guards) -> bool:
        """Whether another line fixes the dim that `finding` is about."""
        rule = finding.rule
        dim = next((dim for dim in self._request.shapes.dynamic if isinstance(rule, SpecializedDynamicDim) and dim.name == rule.dim), None)
        guard = None if dim is None else guards.decisive(dim)
        return guard is not None and _is_outside(assumptions.evidence_about(self._request, guard).location, edits)


def _is_outside(location: Location | None, edits: Sequence[Edit]) -> bool:
    """Whether `location` is a line that the edits do not replace."""
    if location is None or location.line is None:
        return False
    return location.file != edits[0].file or not edits[0].region.line <= location.line <= edits[0].region.last_line


def _is_about(finding: Finding, edits: Sequence[Edit]) -> bool:
    """Whether `edits` change a function that `finding` is about: the one at its place, or one of a library that it calls."""
    return any(_is_in(place, edits) for place in (finding.at.location, *finding.at.related) if place is not None)


def _is_in(place: Location, edits: Sequence[Edit]) -> bool:
    if not edits or place.region is None or {edit.file for edit in edits} != {place.file}:
        return False
    function = syntax.innermost(place.file, place.region, ast.FunctionDef)
    return function is not None and all(function in syntax.around(place.file, edit.region) for edit in edits)


def _callers(edited: Mapping[types.CodeType, types.CodeType], outcome: Outcome) -> list[types.CodeType]:
    """The functions that called `edited` ones in a run, directly or not."""
    found: dict[int, types.CodeType] = {}
    reached = {id(code) for code in edited}
    while reached:
        calling = {id(caller): caller for caller, callee in outcome.calls if caller is not None and id(callee) in reached}
        reached = calling.keys() - found.keys()
        found |= calling
    return list(found.values())
