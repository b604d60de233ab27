"""The model as a protobuf message and as files. Files appear whole or not at all."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from onnxplain import weights
from onnxplain.diagnostics import Confidence, DiagnosticContext, Fix
from onnxplain.request import Request
from onnxplain.rules import CheckerRejected, NeedsExternalData, WeightsWithoutData, WriteFailed
from onnxplain.source import call_sites, locations

from . import model_file
from .staging import Staging

_SMALL = 1024
"""Bytes up to which a weight stays in the message that the checker sees: it may be a shape."""


def open_destination(context: DiagnosticContext, staging: Staging, request: Request) -> None:
    """Makes sure that the model can be written, before the work is done."""
    try:
        staging.open()
    except OSError as error:
        raise _write_failed(context, request, error) from error


def serialize(context: DiagnosticContext, model: ir.Model, staging: Staging, request: Request) -> None:
    """Checks the model and writes it where `staging` says."""
    check(context, model)
    size = weights.total_bytes(model) if request.export_params else 0
    if request.external_data is False and size > weights.PROTOBUF_LIMIT:
        outside = Fix("Let the weights have a file of their own, beside the model.", Confidence.SAFE, snippet="external_data=True")
        place = call_sites.at(call_sites.argument(request, "external_data"), request)
        raise context.fail(NeedsExternalData(size=size, limit=weights.PROTOBUF_LIMIT), at=place, fixes=[outside])
    if request.destination is None:
        return
    hollow = weights.without_data(model)
    if hollow and request.export_params:
        raise context.fail(WeightsWithoutData(names=tuple(hollow)), at=request.caller)
    try:
        path = staging.path
        assert path is not None
        model_file.write(
            model,
            path,
            include_initializers=request.export_params,
            keep_initializers_as_inputs=request.keep_initializers_as_inputs,
            external_data=request.external_data,
        )
    except OSError as error:
        raise _write_failed(context, request, error) from error


def check(context: DiagnosticContext, model: ir.Model) -> None:
    """Runs the ONNX checker, shape inference included, without the weights' data."""
    large = [value for value in weights.of(model) if weights.size_of(value) > _SMALL or not weights.has_data(value)]
    with weights.apart(model, large, as_inputs=True):
        message = ir.to_proto(model)
    try:
        onnx.checker.check_model(message, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        first = str(error).strip().splitlines()[0]
        raise context.fail(CheckerRejected(error=first), at=locations.at_onnx_node(str(error), model), cause=error) from error


def save(context: DiagnosticContext, staging: Staging, request: Request) -> None:
    """Moves what `serialize` wrote to its destination; the last thing an export does."""
    try:
        staging.commit(context)
    except OSError as error:
        raise _write_failed(context, request, error) from error


def _write_failed(context: DiagnosticContext, request: Request, error: OSError) -> Exception:
    rule = WriteFailed(path=str(request.destination), error=f"{type(error).__name__}: {error.strerror or error}")
    return context.fail(rule, at=request.caller, cause=error)
