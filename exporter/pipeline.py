"""The whole job on one page: every stage, in order, each reporting to the context."""

from __future__ import annotations

import torch

from onnxplain import without_collection
from onnxplain.diagnostics import DiagnosticContext
from onnxplain.diagnostics.context import StageFailed

from . import listing, opset, passes
from .binding import signature_of
from .build import build
from .capture import capture
from .dispatch import plan
from .files import Staging
from .noise import kept
from .optimize import optimize
from .options import Request
from .program import ONNXProgram
from .registry import OnnxRegistry
from .serialize import open_destination, save, serialize
from .verify import verify


def run(context: DiagnosticContext, request: Request, registry: OnnxRegistry) -> ONNXProgram:
    """Exports what `request` asks for.

    Raises:
        ExportFailed: A stage could not go on, or its findings fail the export. Then no file has been written.
    """
    with kept(context), Staging(request.destination) as staging:
        with context.stage("open"):
            opset.check(context, request)
            open_destination(context, staging, request)
        with context.stage("capture"):
            captured = capture(context, request, lambda program: look_ahead(context, program, registry))
        with without_collection():
            with context.stage("passes"):
                prepared = passes.run(context, captured.program, registry)
            with context.stage("dispatch"):
                planned = plan(context, prepared, registry)
            with context.stage("build"):
                model = build(context, planned, request)
                context.graph("onnx", lambda: listing.of_onnx("onnx", model))
            if request.optimize:
                with context.stage("optimize"):
                    optimize(context, model)
            with context.stage("serialize"):
                serialize(context, model, staging, request)
        if request.verify:
            with context.stage("verify"):
                verify(context, model, prepared, staging.path, request)
        context.finish()
        with context.stage("save"):
            save(context, staging, request)
    return ONNXProgram(model, captured.program, context.log(), signature_of(request.model))


def look_ahead(context: DiagnosticContext, program: torch.export.ExportedProgram, registry: OnnxRegistry) -> None:
    """Reports what the next stages lack for a program that is no result, so that one run lists all that is in the way."""
    try:
        plan(context, passes.run(context, program, registry), registry)
    except StageFailed:
        # NOTE: its findings are in the context.
        return
    except Exception as error:
        context.event(f"What comes after the capture could not be looked at: {type(error).__name__}: {error}")
