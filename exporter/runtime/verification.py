"""Runs the exported model in ONNX Runtime, compares it with eager PyTorch, and reports what differs."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain import weights
from onnxplain.diagnostics import DiagnosticContext, Evidence, described_error
from onnxplain.passes import Prepared
from onnxplain.recording import RANDOM
from onnxplain.request import Request, flat_inputs, signature_of
from onnxplain.rules import EagerFailed, KernelMissing, NotRun, OutputsDiffer, RuntimeRejected
from onnxplain.source import locations, volatile_calls

from . import eager, sessions
from .comparison import compare, is_rounding, tolerances
from .first_difference import first_difference


def verify(
    context: DiagnosticContext, model: ir.Model, prepared: Prepared, path: pathlib.Path | None, request: Request, write: sessions.WriteModel
) -> None:
    """Compares all outputs for the example inputs; reports each that differs, at the first node whose value differs.

    Args:
        context: The context.
        model: The exported model.
        prepared: The program that it was made from.
        path: Where the model was saved, if it was.
        request: The export.
        write: As for `session`.
    """
    missing = weights.names_without_data(model)
    if missing:
        context.report(NotRun(names=tuple(missing)), at=request.caller)
        return
    random = sorted({node.op_type for node in model.graph.all_nodes() if node.op_type in RANDOM})
    if random:
        context.event(f"The outputs were not compared: {', '.join(random)} gives different numbers in each run.", logging.WARNING)
        return
    inputs = flat_inputs(prepared.program, request.args, request.kwargs, signature_of(request.model))
    actual = _run(context, model, inputs, path, write)
    if actual is None:
        context.event("The outputs were not compared: ONNX Runtime cannot run the model.", logging.WARNING)
        return
    expected = _run_eager(context, prepared.program, request)
    allowed = tolerances(model.graph)
    compared = [compare(*each) for each in zip(actual, expected, allowed, strict=True)]
    differing = [index for index, each in enumerate(compared) if each.differs]
    if differing:
        # NOTE: the random numbers of the first run were put back, so another seed shows whether the outputs depend on them.
        again = eager.outputs(prepared.program, request, seed=1)
        if any(compare(*pair).differs for pair in zip(again, expected, strict=True)):
            context.event("The outputs were not compared: eager PyTorch gives different ones in each run.", logging.WARNING)
            return
        other = eager.outputs_with_other_signs(prepared.program, request)
        signed = [index for index in differing if compare(other[index], expected[index]).differs]
        for index in signed:
            name = model.graph.outputs[index].name
            context.event(f"The output {name} was not compared: it depends on the signs of vectors, which are not unique.", logging.WARNING)
        differing = [index for index in differing if index not in signed]
    if differing:
        exact = eager.outputs_in_double(prepared.program, request) or []
        rounded = [
            index for index in differing if len(exact) == len(expected) and is_rounding(actual[index], expected[index], exact[index])
        ]
        for index in rounded:
            name = model.graph.outputs[index].name
            context.event(f"The output {name} differs as eager PyTorch does from the same computation in float64: by rounding.")
        differing = [index for index in differing if index not in rounded]
    if differing:
        at = first_difference(model, prepared, inputs, write) or _volatile_call(prepared) or locations.module_definition(request.model)
        for index in differing:
            name, each = model.graph.outputs[index].name or "", compared[index]
            context.report(OutputsDiffer(output=name, difference=each.difference, tolerance=each.tolerance), at=at)
    worst = max((each.difference for each in compared), default=0.0)
    context.event(f"{len(expected)} outputs were compared with eager PyTorch; they differ by at most {worst:.3g}.")


def _run(
    context: DiagnosticContext, model: ir.Model, inputs: Sequence[Any], path: pathlib.Path | None, write: sessions.WriteModel
) -> list[torch.Tensor] | None:
    """The outputs of ONNX Runtime; None, and a finding, if it has no kernel for a node."""
    try:
        return sessions.run(sessions.session(model, path, write=write), inputs)
    except Exception as error:
        # NOTE: the exceptions of ONNX Runtime have no common base class but Exception.
        at = locations.at_onnx_node(str(error), model)
        if (missing := _missing_kernel(error, model)) is not None:
            context.report(missing, at=at)
            return None
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if path is not None:
            # NOTE: the folder has a different name in each run, and a finding must stay the same.
            first = first.replace(f"{path.parent}/", "")
        raise context.fail(RuntimeRejected(error=first), at=at, cause=error) from error


def _missing_kernel(error: Exception, model: ir.Model) -> KernelMissing | None:
    """The finding about a node that ONNX Runtime does not implement, if the type of `error` says so."""
    if type(error).__name__ != "NotImplemented" or not type(error).__module__.startswith("onnxruntime."):
        return None
    node = locations.onnx_node(str(error), model)
    if node is None:
        return None
    dtypes = dict.fromkeys(value.dtype.name for value in (*node.inputs, *node.outputs) if value is not None and value.dtype is not None)
    return KernelMissing(operator=node.op_type, dtypes=tuple(dtypes))


def _run_eager(context: DiagnosticContext, program: torch.export.ExportedProgram, request: Request) -> list[torch.Tensor]:
    try:
        return eager.outputs(program, request)
    except Exception as error:
        # NOTE: the user's model runs here, and may raise anything.
        at = locations.at_exception(error, request.model if isinstance(request.model, torch.nn.Module) else None)
        at = at if at.location is not None else Evidence(locations.module_definition(request.model))
        raise context.fail(EagerFailed(error=described_error(error)), at=at, cause=error) from error


def _volatile_call(prepared: Prepared) -> Evidence | None:
    """Where the model asks for the phase or for the time: the answer is different now, and so is what the model computes."""
    ran = volatile_calls.frames(prepared.program)
    asked = [*volatile_calls.phases(ran), *volatile_calls.clocks(ran)]
    return Evidence(asked[0].place.saying("the answer differs from the one during capture")) if asked else None
