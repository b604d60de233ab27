"""Capture: from a model and its example inputs to an ExportedProgram. The policy of strategies on one page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import torch

from onnxplain.diagnostics import DiagnosticContext, Evidence
from onnxplain.process import Budget
from onnxplain.request import DimNames, DynamicShapes, InputDim, Request, inputs
from onnxplain.rules import CaptureFailed, ConstraintViolated, DataDependentBranch, DataDependentValue, SpecializedDynamicDim

from . import audit
from .attempts import Attempt, attempt
from .audit import Finished
from .eager import EagerRuns
from .explain import data_dependence, dims, failures
from .finding import Finding, headline
from .strategies import ALL, CaptureStrategy, as_module, of
from .trials import Trials

_SLOWER = 2.0
"""How much longer than the first strategy another one takes."""


@dataclasses.dataclass(frozen=True)
class Captured:
    """What capture hands on.

    Attributes:
        program: The program as torch.export made it, not decomposed.
        strategy: The name of the strategy that made it; `given` if the user brought it.
        shapes: Which dims of its inputs are dynamic, without those that the model fixes.
    """

    program: torch.export.ExportedProgram
    strategy: str
    shapes: DynamicShapes


def capture(
    context: DiagnosticContext,
    request: Request,
    dim_names: DimNames,
    budget: Budget,
    look_ahead: Callable[[torch.export.ExportedProgram], None],
) -> Captured:
    """Captures the model with the first strategy of `request.strategies` that can.

    If none can, the findings tell what stopped the first one, at the user's line, and what else is in the way.

    Args:
        context: The context.
        request: The export.
        dim_names: Learns the names of the program's sizes.
        budget: How often the model may be run to explain a failure.
        look_ahead: Reports what the next stages would, about a program that is not what was asked for.

    Raises:
        StageFailed: There is no program; the findings are in the context.
    """
    if isinstance(request.model, torch.export.ExportedProgram):
        dim_names.learn(request.model, request.shapes)
        return Captured(request.model, "given", request.shapes)
    args, kwargs = inputs.distinct(request.args, request.kwargs)
    search = _Search(context, dataclasses.replace(request, args=args, kwargs=kwargs), budget)
    finished = search.finished()
    if finished is not None:
        dim_names.learn(finished.program, finished.request.shapes)
        for finding in (*search.remarks(finished), *audit.findings(finished)):
            context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes)
        return Captured(finished.program, finished.attempt.strategy.name, finished.request.shapes)
    trials = Trials(context, search.request, search.runs)
    for finding in list(map(trials.tested, search.findings)):
        blocking, cause = finding.blocking, search.error
        context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes, cause=cause, blocking=blocking)
    if search.partial is not None:
        dim_names.learn(search.partial, search.request.shapes)
        look_ahead(search.partial)
    raise context.stop(search.error)


class _Search:
    """Goes from one strategy to the next, and keeps what stopped them.

    Attributes:
        request: The export, without the dims that the model has turned out to fix.
        runs: The runs of the model without a capture.
        findings: What stopped the strategies, or what is to be said of the program of the one that was not stopped.
        error: What the first strategy raised.
        partial: The first program that is not what was asked for.
    """

    def __init__(self, context: DiagnosticContext, request: Request, budget: Budget) -> None:
        self._context = context
        self._model = as_module(request.model)
        self._fixed: dict[InputDim, Evidence] = {}
        self._some_open = bool(request.shapes.open)
        self._seconds = 0.0
        self.request = request
        self.runs = EagerRuns(context, request, budget)
        self.findings: list[Finding] = []
        self.error: Exception | None = None
        self.partial: torch.export.ExportedProgram | None = None

    def finished(self) -> Finished | None:
        """The first capture that is what was asked for; None if there is none."""
        for strategy in map(of, self.request.strategies):
            if strategy.is_survey:
                self._look_around(strategy)
                # NOTE: a survey is never the result, not even if nothing was seen to depend on the example's data.
                strategy = ALL["non-strict"] if not self.findings else strategy
            if not strategy.is_survey and self._is_worthwhile(strategy):
                made, found = self._without_fixed_dims(strategy)
                if made.program is not None and not any(finding.blocking for finding in found):
                    self.findings = found
                    return Finished(self.request, made.program, made, self._model)
                self._keep(made)
                self.findings = _joined(self.findings, found, made)
            if any(finding.final for finding in self.findings):
                break
        return None

    def remarks(self, finished: Finished) -> Iterator[Finding]:
        """What is to be said of the dims of a program."""
        if self._some_open:
            yield from dims.left_open(finished.request, finished.attempt.guards, finished.program, self._fixed)
        yield from self.findings

    def _keep(self, made: Attempt) -> None:
        self.error, self.partial = self.error or made.error, self.partial or made.program

    def _is_worthwhile(self, strategy: CaptureStrategy) -> bool:
        """Whether a strategy may do better than those before it: sizes and data decide alike in all of them, so that may not cost much."""
        alike = (SpecializedDynamicDim, ConstraintViolated, DataDependentBranch, DataDependentValue)
        if not self.findings or not isinstance(self.findings[0].rule, alike) or self.runs.budget.has(_SLOWER * self._seconds):
            return True
        self._context.event(
            f"The strategy {strategy.name} was not tried: what stopped the first one, in {self._seconds:.0f} s, stops it, too."
        )
        return False

    def _look_around(self, strategy: CaptureStrategy) -> None:
        """Adds what only a survey comes to see, if data stopped the other strategies."""
        if self.findings and not _depend_on_data(self.findings):
            return
        if self.findings and not self.runs.budget.has(self._seconds):
            self._context.event(f"The strategy {strategy.name} was not tried: the capture takes long.")
            return
        made, found = self._without_fixed_dims(strategy)
        self._keep(made)
        if found:
            new = found if not self.findings else [finding for finding in found if not isinstance(finding.rule, CaptureFailed)]
            self.findings = _at_distinct_places([*self.findings, *new])

    def _without_fixed_dims(self, strategy: CaptureStrategy) -> tuple[Attempt, list[Finding]]:
        """What `strategy` came to. Where the model fixes dims, it is what it comes to with their sizes as numbers."""
        made, found = self._tried(strategy)
        own = strategy.name not in ALL
        while self._some_open and (known := dims.fixed(self.request, made.guards, made.program, own=own)):
            self._fixed |= known
            self.request = dims.closed(self.request, known)
            made, found = self._tried(strategy)
        return made, found

    def _tried(self, strategy: CaptureStrategy) -> tuple[Attempt, list[Finding]]:
        """What `strategy` came to, and what is wrong with that; with narrower dims if torch asks for them and that helps."""
        made = self._attempt(strategy, self.request)
        found = self._found(made)
        narrowed = dims.narrowed(self.request, made.error, made.guards)
        if narrowed is None or not all(finding.negligible or isinstance(finding.rule, ConstraintViolated) for finding in found):
            return made, found
        self._context.event("torch.export asks for narrower dynamic_shapes.")
        again = self._attempt(strategy, narrowed)
        left = self._found(again)
        if again.program is None or any(finding.blocking for finding in left):
            return made, found
        # NOTE: whether a promise that the model cannot keep fails the export is the rule's level to say.
        told = [dataclasses.replace(finding, blocking=False) for finding in found if not finding.negligible]
        return again, _at_distinct_places([*told, *left])

    def _attempt(self, strategy: CaptureStrategy, request: Request) -> Attempt:
        made = attempt(self._context, strategy, self._model, request)
        if not self._seconds:
            self._seconds = made.seconds
            self.runs.budget.grow(made.seconds)
        elif self.findings:
            self.runs.budget.spend(made.seconds)
        return made

    def _found(self, made: Attempt) -> list[Finding]:
        """What is wrong with an attempt; nothing blocking only if its program does what was asked."""
        found = data_dependence.assumptions(self.request, made.guards, self.runs)
        if made.error is not None and not self.findings:
            found += failures.explain(self.request, made.strategy.name, made.error, made.guards, self.runs)
        elif made.error is not None:
            found += failures.recognised(self.request, made.error, made.guards, self.runs)
        if made.program is not None:
            found += dims.undelivered(self.request, made.guards, made.program)
            found += failures.lost(self.request, made.program)
        return found


def _joined(findings: list[Finding], found: list[Finding], made: Attempt) -> list[Finding]:
    """One finding for one cause: the first strategy's, which has the most precise line."""
    if not findings:
        return _at_distinct_places(found)
    if isinstance(findings[0].rule, CaptureFailed) and made.error is not None:
        note = f"The strategy {made.strategy.name} failed, too: {headline(made.error)}"
        return [dataclasses.replace(findings[0], notes=(*findings[0].notes, note)), *findings[1:]]
    return findings


def _at_distinct_places(findings: Iterable[Finding]) -> list[Finding]:
    first: dict[object, Finding] = {}
    for finding in findings:
        # NOTE: several dims may be frozen by one line.
        key = finding.place if _depend_on_data([finding]) else (finding.place, finding.rule)
        first.setdefault(key, finding)
    return list(first.values())


def _depend_on_data(findings: list[Finding]) -> bool:
    return any(isinstance(finding.rule, DataDependentBranch | DataDependentValue) for finding in findings)
