"""Captures a model with its example inputs as an ExportedProgram. This page decides what is captured: the model, or a rewritten copy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import torch

from onnxplain.diagnostics import Confidence, DiagnosticContext, Edit
from onnxplain.process import Budget
from onnxplain.request import DimNames, DynamicShapes, Request, inputs
from onnxplain.rules import CheckLeftOut, ConstraintViolated, HookTraced, SpecializedDynamicDim, UserCodeRaised

from . import audit, block_examples
from .audit import Finished
from .behind import Behind
from .explain import arguments, axes_argument, dims
from .finding import Finding
from .rewritten_copies import RewrittenCopies
from .search import Search
from .trials import Trials

_REWRITES = 3.0
"""How many times as long as the first capture it may take to try a rewritten copy: it runs, and is captured."""


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
    request = dataclasses.replace(request, args=args, kwargs=kwargs)
    result = _searched(context, request, budget)
    if result.finished is not None:
        for finding in result.findings:
            context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes)
        dim_names.learn(result.finished.program, result.finished.request.shapes)
        return Captured(result.finished.program, result.finished.attempt.strategy.name, result.finished.request.shapes)
    results = [result]
    if (repaired := arguments.repaired(request, result.findings)) is not None:
        context.event("The capture goes on with dynamic_shapes that fit the inputs, to look for further problems.")
        further = _searched(context, repaired, budget)
        edits = [edit for finding in result.findings for fix in finding.fixes for edit in fix.edits]
        results.append(dataclasses.replace(further, findings=[_without_edits_of(finding, edits) for finding in further.findings]))
    for each in results:
        for finding in each.findings:
            blocking = finding.blocking and each.finished is None
            cause = each.error if finding.own_cause else None
            context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes, cause=cause, blocking=blocking)
        if (reached := each.finished or each.reached) is not None:
            dim_names.learn(reached.program, reached.request.shapes)
            look_ahead(reached.program)
    raise context.stop(result.error)


@dataclasses.dataclass(frozen=True)
class _Result:
    """What came of one request.

    Attributes:
        findings: The findings: what stopped the capture, and what is behind; or the remarks about the result.
        error: The exception of the first strategy that raised one.
        finished: The capture that meets the request; None if there is none.
        reached: Another capture that came to the model's end under an assumption.
    """

    findings: list[Finding]
    error: Exception | None
    finished: Finished | None = None
    reached: Finished | None = None


def _searched(context: DiagnosticContext, request: Request, budget: Budget) -> _Result:
    """Tries all strategies, then rewritten copies of the model, and if neither succeeds, looks for all problems."""
    first = search = Search(context, request, budget)
    finished, findings = search.finished(), list[Finding]()
    trials = Trials(context, search.request, search.runs)
    rewrites = request.control_flow != "report" and budget.is_open
    counted = [] if finished is None or not rewrites else dims.avoidable_limits(request, finished.attempt.guards, search.findings)
    if counted:
        copies = RewrittenCopies(context, search, trials)
        copied, notes = copies.finished([trials.tested(finding) for finding in counted])
        if copied is not None and len(_limits(copies.search.findings)) < len(_limits(search.findings)):
            finished, findings, search = copied, notes, copies.search
    if finished is None:
        if rewrites and any(fix.edits and fix.confidence is Confidence.SAFE for finding in search.findings for fix in finding.fixes):
            budget.grow(_REWRITES * search.seconds)
        findings = [trials.tested(finding if rewrites else finding.for_users()) for finding in search.findings]
        if rewrites:
            copies = RewrittenCopies(context, search, trials)
            finished, findings = copies.finished(findings)
            search = copies.search
    limits = math.inf if finished is None else len(_limits(search.findings))
    if rewrites and limits and (result := _of_several_blocks(context, first, [*first.findings, *counted], limits)) is not None:
        return result
    if finished is not None:
        findings = [finding.for_users() for finding in findings]
        return _Result([*_one_a_cause([*findings, *search.remarks(finished), *audit.findings(finished)])], search.error, finished)
    if arguments.repaired(request, findings) is not None:
        return _Result(findings, search.error)
    behind = Behind(context, search)
    findings += [dataclasses.replace(trials.tested(finding), own_cause=False) for finding in behind.findings(findings)]
    findings = [finding.for_users() for finding in findings]
    if behind.unseen and findings:
        findings[0] = dataclasses.replace(findings[0], notes=(*findings[0].notes, behind.unseen))
    remarks = (dataclasses.replace(finding, own_cause=False) for finding in behind.remarks(findings))
    findings = _with_limits_as_remarks([*_one_a_cause(_without_seeming_dims([*findings, *remarks]))])
    return _Result(findings, search.error, reached=behind.reached)


def _of_several_blocks(context: DiagnosticContext, search: Search, findings: Sequence[Finding], limits: float) -> _Result | None:
    """What comes of an example of several blocks, if a loop takes all of the example as a single one; None if it has as many limits."""
    budget = search.runs.budget
    larger = block_examples.of_several(search.asked, findings, search.runs) if budget.has(search.seconds) else None
    if larger is None:
        return None
    context.event("A loop takes all of the example as one block; another capture takes an example of several blocks.")
    result = _searched(context, larger, budget)
    if result.finished is None or len(_limits(result.findings)) >= limits or not search.equals_eager(result.finished.program):
        return None
    kept = len(result.finished.request.shapes.dynamic) == len(search.asked.shapes.dynamic)
    return dataclasses.replace(result, finished=dataclasses.replace(result.finished, request=search.asked)) if kept else None


def _limits(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if isinstance(finding.rule, ConstraintViolated)]


def _without_edits_of(finding: Finding, others: Sequence[Edit]) -> Finding:
    """`finding` whose fixes have no edits on the lines of `others`, which have to be made first."""

    def clashes(edit: Edit) -> bool:
        same_file = (other.region for other in others if other.file == edit.file)
        return any(edit.region.line <= other.last_line and other.line <= edit.region.last_line for other in same_file)

    fixes = (dataclasses.replace(fix, edits=()) if any(map(clashes, fix.edits)) else fix for fix in finding.fixes)
    return dataclasses.replace(finding, fixes=tuple(fixes))


def _without_seeming_dims(findings: Sequence[Finding]) -> list[Finding]:
    """`findings` without dims that only seem to have to be the example's size, at lines where the example itself fails."""
    failing = {finding.place for finding in findings if isinstance(finding.rule, UserCodeRaised)}
    return [each for each in findings if not (isinstance(each.rule, SpecializedDynamicDim) and each.place in failing)]


def _with_limits_as_remarks(findings: Sequence[Finding]) -> list[Finding]:
    """`findings` in which limits of dims do not block the export if others do: without those, it would go on with narrower dims."""
    is_limit = [isinstance(finding.rule, ConstraintViolated) for finding in findings]
    if not any(finding.blocking and not limit for finding, limit in zip(findings, is_limit, strict=True)):
        return list(findings)
    return [
        dataclasses.replace(finding, blocking=finding.blocking and not limit)
        for finding, limit in zip(findings, is_limit, strict=True)
        if not (limit and finding.negligible)
    ]


def _one_a_cause(findings: Sequence[Finding]) -> Iterator[Finding]:
    """`findings` without notes about checks at the lines of other findings, which tell what the check requires."""
    # NOTE: a hook is told at its first line, which may be the check.
    told = {finding.place for finding in findings if not isinstance(finding.rule, CheckLeftOut | HookTraced)}
    for finding in findings:
        if not isinstance(finding.rule, CheckLeftOut):
            yield finding
        elif finding.place not in told:
            told.add(finding.place)
            yield finding
