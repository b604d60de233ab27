"""The stages of an export that write the model: they decide what is written, and report why a model cannot be written."""

from __future__ import annotations

import logging
import pathlib

import onnx
import onnx_ir as ir

from onnxplain import weights
from onnxplain.diagnostics import Confidence, DiagnosticContext, Fix
from onnxplain.request import Request
from onnxplain.rules import CheckerRejected, NeedsExternalData, WeightsWithoutData, WriteFailed
from onnxplain.source import call_sites, locations

from . import model_file
from .paths import data_file
from .staging import Staging

_SMALL = 1024
"""The largest weight that the checker gets the data of, in bytes: the weight may be a shape."""


def open_destination(context: DiagnosticContext, staging: Staging, request: Request) -> None:
    """Makes sure that the model can be written, before the work begins."""
    try:
        staging.open()
    except OSError as error:
        raise _write_failed(context, request, error) from error


def serialize(context: DiagnosticContext, model: ir.Model, staging: Staging, request: Request) -> None:
    """Writes the model to the folder of `staging`."""
    # NOTE: a deep model has thousands of weights, and few exports ask for their size.
    is_limited = request.export_params and request.external_data is False
    if is_limited and (size := weights.total_bytes(model)) > weights.PROTOBUF_LIMIT:
        outside = Fix("Write the weights to a separate file beside the model.", Confidence.SAFE, snippet="external_data=True")
        place = call_sites.at(call_sites.argument(request, "external_data"), request)
        raise context.fail(NeedsExternalData(size=size, limit=weights.PROTOBUF_LIMIT), at=place, fixes=[outside])
    if request.destination is None:
        return
    missing = weights.names_without_data(model)
    if missing and request.export_params:
        raise context.fail(WeightsWithoutData(names=tuple(missing)), at=request.caller)
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
        if context.records(logging.DEBUG):
            _tell(context, model, path, request)
    except OSError as error:
        raise _write_failed(context, request, error) from error


def _tell(context: DiagnosticContext, model: ir.Model, path: pathlib.Path, request: Request) -> None:
    """Records the files that were written, and where the weights are."""
    data = data_file(path)
    placed = "outside, in the state dict" if not request.export_params else f"in {data.name}" if data.exists() else f"in {path.name}"
    files = ", ".join(f"{each.name} with {each.stat().st_size} bytes" for each in (path, data) if each.exists())
    context.event(f"Wrote {files}. The weights, {weights.total_bytes(model)} bytes, are {placed}.", logging.DEBUG)


def save(context: DiagnosticContext, staging: Staging, request: Request) -> None:
    """Moves what `serialize` wrote to its destination; the last thing that an export does."""
    try:
        staging.commit(context)
    except OSError as error:
        raise _write_failed(context, request, error) from error


def check(context: DiagnosticContext, model: ir.Model, *, types: bool = True) -> None:
    """Runs the ONNX checker without the data of large weights.

    Args:
        context: It gets the finding.
        model: The model.
        types: Whether dtypes and shapes are checked as well. The checker infers them anew for every call of a function.
    """
    large = [value for value in weights.of(model) if weights.size_of(value) > _SMALL or not weights.has_data(value)]
    with weights.set_aside(model, large, as_inputs=True):
        message = ir.to_proto(model)
    try:
        onnx.checker.check_model(message, full_check=types)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        first = str(error).strip().splitlines()[0]
        raise context.fail(CheckerRejected(error=first), at=locations.at_onnx_node(str(error), model), cause=error) from error


def _write_failed(context: DiagnosticContext, request: Request, error: OSError) -> Exception:
    rule = WriteFailed(path=str(request.destination), error=f"{type(error).__name__}: {error.strerror or error}")
    return context.fail(rule, at=request.caller, cause=error)
