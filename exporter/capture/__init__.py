"""Capture: from a model and its example inputs to an ExportedProgram."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch

from onnxplain import process
from onnxplain.diagnostics import DiagnosticContext, Evidence
from onnxplain.request import DimNames, InputDim, Request, inputs
from onnxplain.rules import CaptureFailed, ConstraintViolated, DataDependentBranch, DataDependentValue
from onnxplain.source import locations, volatile_calls

from .audit import baked_inputs, dropped_checks, hooks, random_operators, symbolics, training_mode, unrolled_loops
from .explain import data_dependence, dims, failures
from .finding import Finding, headline
from .observe import host_values
from .observe.attributes import Attributes
from .observe.frames import Frames
from .observe.guards import Guards
from .observe.reads import Reads, holds_tensors
from .rewrite import prove
from .strategies import ALL, CaptureStrategy, of


@dataclasses.dataclass(frozen=True)
class Captured:
    """What capture hands on.

    Attributes:
        program: The program as torch.export made it, not decomposed.
        strategy: The name of the strategy that made it; `given` if the user brought it.
    """

    program: torch.export.ExportedProgram
    strategy: str


@dataclasses.dataclass(frozen=True)
class _Attempt:
    """What one strategy came to: a program or an error."""

    strategy: str
    program: torch.export.ExportedProgram | None
    error: Exception | None
    guards: Guards
    draws: host_values.Draws
    attributes: Attributes
    reads: Reads


def capture(
    context: DiagnosticContext, request: Request, dim_names: DimNames, look_ahead: Callable[[torch.export.ExportedProgram], None]
) -> Captured:
    """Captures the model with the first strategy of `request.strategies` that can.

    If none can, the findings tell what stopped the first one, at the user's line, and what else is in the way.

    Args:
        context: The context.
        request: The export.
        dim_names: Learns the names of the program's sizes.
        look_ahead: Reports what the next stages would, about a program that is not what was asked for.

    Raises:
        StageFailed: There is no program; the findings are in the context.
    """
    if isinstance(request.model, torch.export.ExportedProgram):
        dim_names.learn(request.model)
        return Captured(request.model, "given")
    args, kwargs = inputs.distinct(request.args, request.kwargs)
    model, request = _as_module(request.model), dataclasses.replace(request, args=args, kwargs=kwargs)
    some_open = bool(request.shapes.open)
    fixed: dict[InputDim, Evidence] = {}
    findings: list[Finding] = []
    error: Exception | None = None
    partial: torch.export.ExportedProgram | None = None
    for strategy in map(of, request.strategies):
        if strategy.name == "draft" and findings and not _depend_on_data(findings):
            continue
        attempt, found = _tried(context, strategy, model, request, first=not findings)
        if strategy.name == "draft" and not found:
            # NOTE: a draft is never the result, not even if nothing was seen to depend on the example's data.
            attempt, found = _tried(context, ALL["non-strict"], model, request, first=not findings)
        own = strategy.name not in ALL
        while some_open and (known := dims.fixed(request, attempt.guards, attempt.program, own=own)):
            # NOTE: once more with their sizes as numbers, which the next stages can compute with.
            fixed |= known
            request = dims.closed(request, known)
            attempt, found = _tried(context, strategy, model, request, first=not findings)
        if attempt.program is not None and not any(finding.blocking for finding in found):
            if some_open:
                dims.report_open(context, request, attempt.guards, attempt.program, fixed)
            dim_names.learn(attempt.program)
            _report(context, found, None)
            _report_baked(context, request, attempt, functools.partial(strategy, model, request, Frames()))
            return Captured(attempt.program, attempt.strategy)
        error, partial = error or attempt.error, partial or attempt.program
        findings = _joined(findings, found, attempt)
        if any(finding.final for finding in findings):
            break
    findings = [_tested(context, request, model, finding) for finding in findings]
    _report(context, findings, error)
    if partial is not None:
        dim_names.learn(partial)
        look_ahead(partial)
    raise context.stop(error)


def _tested(context: DiagnosticContext, request: Request, model: torch.nn.Module, finding: Finding) -> Finding:
    return dataclasses.replace(finding, fixes=prove.proven(context, request, model, finding))


def _report(context: DiagnosticContext, findings: list[Finding], error: Exception | None) -> None:
    for finding in findings:
        context.report(finding.rule, at=finding.at, notes=finding.notes, fixes=finding.fixes, cause=error, blocking=finding.blocking)


def _report_baked(
    context: DiagnosticContext, request: Request, attempt: _Attempt, again: Callable[[], torch.export.ExportedProgram]
) -> None:
    """What a program that was captured does not say of itself: values that are constants now, and numbers that are drawn."""
    assert attempt.program is not None
    frames = volatile_calls.frames(attempt.program)
    dims.report_ones(context, request)
    training_mode.report(context, request, attempt.program)
    baked_inputs.report(context, request, attempt.program)
    unrolled_loops.report(context, attempt.program)
    symbolics.report(context, attempt.program)
    attempt.draws.report(context, again)
    host_values.report_clocks(context, attempt.program, frames, again)
    attempt.attributes.report(context, frames, again)
    attempt.reads.report(context)
    random_operators.report(context, attempt.program)
    dropped_checks.report(context, attempt.guards, attempt.program)
    hooks.report(context, request, frames)


def _tried(
    context: DiagnosticContext, strategy: CaptureStrategy, model: torch.nn.Module, request: Request, *, first: bool
) -> tuple[_Attempt, list[Finding]]:
    """What `strategy` came to, and what is wrong with that."""
    attempt = _attempt(context, strategy, model, request)
    found = _found(request, attempt, first=first)
    narrowed = dims.narrowed(request, attempt.error, attempt.guards)
    if narrowed is None or not all(finding.negligible or isinstance(finding.rule, ConstraintViolated) for finding in found):
        return attempt, found
    context.event("torch.export asks for narrower dynamic_shapes.")
    again = _attempt(context, strategy, model, narrowed)
    left = _found(request, again, first=first)
    if again.program is None or any(finding.blocking for finding in left):
        return attempt, found
    # NOTE: whether a promise that the model cannot keep fails the export is the rule's level to say.
    told = [dataclasses.replace(finding, blocking=False) for finding in found if not finding.negligible]
    return again, _at_distinct_places([*told, *left])


def _attempt(context: DiagnosticContext, strategy: CaptureStrategy, model: torch.nn.Module, request: Request) -> _Attempt:
    context.event(f"Capturing with the strategy {strategy.name}.")
    with Frames() as frames:
        guards, draws, attributes, reads = Guards(frames), host_values.Draws(), Attributes(model), Reads(frames.stack)
        # NOTE: TorchDynamo would look at the mode itself; and each function of torch's costs a little more in it.
        reading = reads if strategy.name != "strict" and holds_tensors(model) else contextlib.nullcontext()
        try:
            with process.kept(context, locations.user_speaks), guards.watched(), reading:
                program = strategy(model, request, frames)
        except Exception as error:
            context.event(f"The strategy {strategy.name} failed: {headline(error)}")
            attributes.put_back()
            return _Attempt(strategy.name, None, error, guards, draws, attributes, reads)
    context.event(f"The strategy {strategy.name} captured {len(program.graph.nodes)} nodes.")
    return _Attempt(strategy.name, program, None, guards, draws, attributes, reads)


def _found(request: Request, attempt: _Attempt, *, first: bool) -> list[Finding]:
    """What is wrong with an attempt; nothing blocking only if its program does what was asked."""
    found = data_dependence.assumptions(request, attempt.guards)
    if attempt.error is not None and first:
        found += failures.explain(request, attempt.strategy, attempt.error, attempt.guards)
    elif attempt.error is not None:
        found += failures.recognised(request, attempt.error, attempt.guards)
    if attempt.program is not None:
        found += dims.undelivered(request, attempt.guards, attempt.program)
        found += failures.lost(request, attempt.program)
    return found


def _joined(findings: list[Finding], found: list[Finding], attempt: _Attempt) -> list[Finding]:
    """One finding for one cause: the first strategy's, which has the most precise line, and what only the draft came to see."""
    if not findings:
        return _at_distinct_places(found)
    if attempt.strategy == "draft":
        return _at_distinct_places([*findings, *(finding for finding in found if not isinstance(finding.rule, CaptureFailed))])
    if isinstance(findings[0].rule, CaptureFailed) and attempt.error is not None:
        note = f"The strategy {attempt.strategy} failed, too: {headline(attempt.error)}"
        return [dataclasses.replace(findings[0], notes=(*findings[0].notes, note)), *findings[1:]]
    return findings


def _at_distinct_places(findings: list[Finding]) -> list[Finding]:
    first: dict[object, Finding] = {}
    for finding in findings:
        # NOTE: several dims may be frozen by one line.
        key = finding.place if _depend_on_data([finding]) else (finding.place, finding.rule)
        first.setdefault(key, finding)
    return list(first.values())


def _depend_on_data(findings: list[Finding]) -> bool:
    return any(isinstance(finding.rule, DataDependentBranch | DataDependentValue) for finding in findings)


def _as_module(model: Callable[..., Any]) -> torch.nn.Module:
    """`model` as the module that torch.export wants, with the signature that the user wrote."""
    if isinstance(model, torch.nn.Module):
        return model
    module = torch.nn.Module()
    if isinstance(owner := getattr(model, "__self__", None), torch.nn.Module):
        # NOTE: a method's weights are parameters then, with names, and not constants.
        module.add_module("model", owner)
    # NOTE: torch.export reads the signature and the code object of `forward`; builtins and objects with `__call__` lack one of them.
    module.forward = model if isinstance(model, types.FunctionType | types.MethodType) else _forwarding(model)
    return module


def _forwarding(function: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with contextlib.suppress(ValueError):
        forward.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return forward
