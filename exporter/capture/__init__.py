"""Captures a model with its example inputs as an ExportedProgram. This page decides what is captured: the model, or a rewritten copy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.process import Budget
from onnxplain.request import DimNames, DynamicShapes, Request, inputs
from onnxplain.rules import CheckLeftOut

from . import audit
from .explain import axes_argument
from .finding import Finding
from .rewritten_copies import RewrittenCopies
from .search import Search
from .trials import Trials


@dataclasses.dataclass(frozen=True)
class Captured:
    """The result of capture.

    Attributes:
        program: The program from torch.export, not decomposed.
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
    """Captures the model with the first strategy of `request.strategies` that succeeds.

    If none succeeds, the request may allow to capture a copy whose loops and branches are rewritten. Otherwise the findings explain at the
    user's line what stopped the first strategy, and list the other problems.

    Args:
        context: The context.
        request: The export.
        dim_names: Learns the names of the program's sizes.
        budget: How often the model may be run to explain a failure.
        look_ahead: Reports the problems that the next stages would have with a partial program.

    Raises:
        StageFailed: There is no program; the findings are in the context.
    """
    if isinstance(request.model, torch.export.ExportedProgram):
        dim_names.learn(request.model, request.shapes)
        return Captured(request.model, "given", request.shapes)
    if wrong := list(axes_argument.faults(request)):
        for finding in wrong:
            context.report(finding.rule, at=finding.at, fixes=finding.fixes, blocking=finding.blocking)
        raise context.stop()
    args, kwargs = inputs.distinct(request.args, request.kwargs)
    search = Search(context, dataclasses.replace(request, args=args, kwargs=kwargs), budget)
    finished, findings = search.finished(), []
    if finished is None:
        trials = Trials(context, search.request, search.runs)
        rewrites = request.control_flow != "report" and budget.is_open
        findings = [trials.tested(finding if rewrites else finding.for_users()) for finding in search.findings]
        if rewrites:
            copies = RewrittenCopies(context, search, trials)
            finished, findings = copies.finished(findings)
            search = copies.search
        if finished is None:
            findings += [trials.tested(finding) for finding in search.also_frozen()]
        findings = [finding.for_users() for finding in findings]
    if finished is not None:
        dim_names.learn(finished.program, finished.request.shapes)
        for finding in _one_a_cause([*findings, *search.remarks(finished), *audit.findings(finished)]):
            context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes)
        return Captured(finished.program, finished.attempt.strategy.name, finished.request.shapes)
    for finding in findings:
        blocking, cause = finding.blocking, search.error
        context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes, cause=cause, blocking=blocking)
    search.look_behind_dims()
    if search.partial is not None:
        dim_names.learn(search.partial, search.request.shapes)
        look_ahead(search.partial)
    raise context.stop(search.error)


def _one_a_cause(findings: Sequence[Finding]) -> Iterator[Finding]:
    """`findings` without notes about checks at the lines of other findings, which tell what the check requires."""
    told = {finding.place for finding in findings if not isinstance(finding.rule, CheckLeftOut)}
    for finding in findings:
        if not isinstance(finding.rule, CheckLeftOut):
            yield finding
        elif finding.place not in told:
            told.add(finding.place)
            yield finding
