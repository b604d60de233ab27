"""The whole export on one page: every stage, in order, each reporting to the context."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir as ir
import torch

from onnxplain.diagnostics import DiagnosticContext, ExportFailed, StageFailed, described_error

from . import functions, graph_views, opset, passes
from .build import build
from .capture import capture
from .dispatch import plan
from .memory import review
from .optimize import optimize
from .passes import Prepared
from .process import Budget, as_model_allows, kept, without_autocast, without_collection
from .program import ONNXProgram
from .registry import OnnxRegistry
from .repeats import Run, copy_blocks, enclosing, find
from .repeats import within as within_part
from .request import DimNames, Request, example_shapes, signature_of
from .runtime import verify
from .source import locations
from .storage import Staging, check, open_destination, save, serialize, write
from .torch_internals import symbols
from .torch_internals.fake_tensors import mode_left
from .torch_internals.leftover_answers import answers_forgotten


def run(context: DiagnosticContext, request: Request, registry: OnnxRegistry, dim_names: DimNames, budget: Budget) -> ONNXProgram:
    """Runs the export that `request` describes.

    Args:
        context: Every stage reports to it.
        request: The export.
        registry: The translations.
        dim_names: The names of dims, which it learns from the captured program.
        budget: How often the model may be run to explain a failure.

    Raises:
        ExportFailed: A stage could not go on, or its findings fail the export. No file has been written then.
    """
    with answers_forgotten(), kept(context, locations.user_speaks), as_model_allows(request.model), Staging(request.destination) as staging:
        with context.stage("open"):
            opset.check(context, request)
            open_destination(context, staging, request)
        with context.stage("capture"):
            for lacking in symbols.told():
                context.event(lacking, logging.WARNING)

            def look_ahead(program: torch.export.ExportedProgram) -> None:
                _look_ahead(context, "capture", lambda: plan(context, passes.run(context, program, registry, dim_names), registry))

            captured = capture(context, request, dim_names, budget, look_ahead)
            request = dataclasses.replace(request, shapes=captured.shapes)
        with without_collection(), mode_left():
            prepared, flat, model = _translated(context, captured.program, registry, request, dim_names, staging)
        verification = None
        if request.verify:
            with context.stage("verify"):
                verification = verify(
                    context, model, flat, prepared, staging.path, request, dim_names, functools.partial(write, external_data=True)
                )
        context.finish()
        with context.stage("save"):
            save(context, staging, request)
    return ONNXProgram(model, captured.program, context.log(), signature_of(request.model), verification)


@dataclasses.dataclass(frozen=True)
class _Way:
    """A way to the model.

    Attributes:
        prepared: The prepared program.
        runs: Runs of equal blocks, of which a few are translated and copied for the others.
        left_out: The nodes of the prepared program that are not translated, each with the one that it equals.
        around: The keys of the module calls around the blocks, if the calls within them become functions before they are copied.
    """

    prepared: Prepared
    runs: Sequence[Run] = ()
    left_out: Mapping[torch.fx.Node, torch.fx.Node] = dataclasses.field(default_factory=dict)
    around: frozenset[str] | None = None


def _translated(
    context: DiagnosticContext,
    program: torch.export.ExportedProgram,
    registry: OnnxRegistry,
    request: Request,
    dim_names: DimNames,
    staging: Staging,
) -> tuple[Prepared, ir.Model, ir.Model]:
    """The prepared program, the model without functions, and the model that was written."""
    for way in _ways(context, program, registry, request, dim_names):
        # NOTE: a finding is about all operators that it applies to, and names each of them.
        with without_autocast(), contextlib.suppress(ExportFailed) if way.runs else contextlib.nullcontext():
            found = _written(context, way, registry, request, dim_names, staging)
            if found is not None:
                return way.prepared, *found
    raise AssertionError("without runs there is a model, or the export has failed")


def _ways(
    context: DiagnosticContext, program: torch.export.ExportedProgram, registry: OnnxRegistry, request: Request, dim_names: DimNames
) -> Iterator[_Way]:
    """The ways to the model, each in place of one that did not lead there."""
    start = context.mark()
    # NOTE: memory is a matter of the whole graph, and at DEBUG the log tells of all nodes.
    whole = request.optimize == "memory" or context.records(logging.DEBUG)
    # NOTE: a verification may run each node of the prepared graph.
    found = None
    if not whole and not request.verify:
        with contextlib.suppress(ExportFailed), context.stage("passes"):
            found = _part(context, program, registry, request, dim_names)
        if found is not None:
            yield found
        context.back_to(start)
    with context.stage("passes"):
        prepared = passes.run(context, program, registry, dim_names)
        runs = () if whole else find(prepared, registry)
    before = context.mark()
    if runs and found is None and request.functions and not request.verify and (around := enclosing(prepared, runs)) is not None:
        yield _Way(prepared, runs, _left_out(runs), around)
        context.back_to(before)
    if runs:
        yield _Way(prepared, runs, _left_out(runs))
        context.back_to(before)
    yield _Way(prepared)


def _part(
    context: DiagnosticContext, program: torch.export.ExportedProgram, registry: OnnxRegistry, request: Request, dim_names: DimNames
) -> _Way | None:
    """The prepared program without the blocks that are left out; None if it has no runs, or if passes have to see all blocks."""
    runs = find(Prepared(program, program.graph_module), registry)
    if not runs:
        return None
    before = context.mark()
    prepared = passes.run_without(context, program, registry, dim_names, _left_out(runs))
    # NOTE: a finding may be about operators of each block.
    if prepared is None or context.mark().findings != before.findings:
        return None
    within = within_part(prepared, runs)
    if within is None:
        return None
    return _Way(prepared, within, around=enclosing(prepared, within) if request.functions else None)


def _left_out(runs: Sequence[Run]) -> dict[torch.fx.Node, torch.fx.Node]:
    return {node: same for run in runs for node, same in run.left_out().items()}


def _written(
    context: DiagnosticContext, way: _Way, registry: OnnxRegistry, request: Request, dim_names: DimNames, staging: Staging
) -> tuple[ir.Model, ir.Model] | None:
    """The model without functions, and the model that was written; None if this way leads to none."""
    prepared, runs = way.prepared, way.runs
    with context.stage("dispatch"):
        planned = plan(context, prepared, registry, way.left_out)
        if planned.untranslated:
            _look_ahead(context, "dispatch", lambda: build(context, planned, request, dim_names, way.left_out))
            raise context.stop()
    with context.stage("build"):
        built = build(context, planned, request, dim_names, way.left_out)
        model = built.model
        context.graph("onnx", lambda: graph_views.of_onnx("onnx", model))
    if request.optimize:
        with context.stage("optimize"):
            optimize(context, model)
            shapes = example_shapes(prepared.program, request.args, request.kwargs, signature_of(request.model))
            if review(context, model, shapes, rewrite=request.optimize == "memory") and runs:
                return None
    with context.stage("serialize"):
        opset.lower(context, model, request)
        check(context, model)
        # NOTE: a node that is copied has no function of the user.
        has_functions = functions.wanted(model, request)
        # NOTE: a call is copied in less time than the nodes that it stands for.
        outlining = None if way.around is None else functions.begin(context, model, request, way.around)
        if model.functions:
            check(context, model)
        if runs and not copy_blocks(context, model, runs, built.values, built.origin):
            return None
        written = model
        if outlining is not None:
            written = outlining.end()
        elif has_functions:
            written = functions.outline(context, model, request)
        if written.functions:
            # NOTE: the copies of a call have its types, which were checked.
            check(context, written, types=outlining is None)
        serialize(context, written, staging, request)
    return model, written


def _look_ahead(context: DiagnosticContext, stage: str, look: Callable[[], object]) -> None:
    """Runs the stages after a failed one with what it could make, so that one run lists all problems."""
    try:
        look()
    except StageFailed:
        # NOTE: its findings are in the context.
        return
    except Exception as error:  # noqa: BLE001  the program is incomplete, so any stage may stumble; the findings until then stand
        context.event(f"What comes after the {stage} could not be looked at: {described_error(error)}")
