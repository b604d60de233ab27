"""Runs the exported model in ONNX Runtime and compares it with eager PyTorch."""

from __future__ import annotations

import copy
import logging
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain import weights
from onnxplain.diagnostics import DiagnosticContext, Evidence
from onnxplain.passes import Prepared
from onnxplain.recording import RANDOM
from onnxplain.request import Request, flat_inputs, signature_of
from onnxplain.rules import EagerFailed, KernelMissing, NotRun, OutputsDiffer, RuntimeRejected
from onnxplain.source import locations, volatile_calls
from onnxplain.torch_internals import loop_gradients, pytree

from . import sessions

TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Absolute and relative tolerance by dtype; everything else has to be equal."""


def verify(
    context: DiagnosticContext, model: ir.Model, prepared: Prepared, path: pathlib.Path | None, request: Request, write: sessions.Write
) -> None:
    """Compares all outputs on the example inputs; reports each that differs, at the first node that does.

    Args:
        context: The context.
        model: The exported model.
        prepared: The program that it was made from.
        path: Where the model was saved, if it was.
        request: The export.
        write: As for `session`.
    """
    hollow = tuple(weights.without_data(model))
    if hollow:
        context.report(NotRun(names=hollow), at=request.caller)
        return
    random = sorted({node.op_type for node in model.graph.all_nodes() if node.op_type in RANDOM})
    if random:
        context.event(f"The outputs were not compared: {', '.join(random)} gives other numbers in each run.", logging.WARNING)
        return
    inputs = flat_inputs(prepared.program, request.args, request.kwargs, signature_of(request.model))
    try:
        actual = sessions.run(sessions.session(model, path, write=write), inputs)
    except Exception as error:
        if (missing := _missing_kernel(error, model)) is not None:
            context.report(missing, at=locations.at_onnx_node(str(error), model))
            context.event("The outputs were not compared: ONNX Runtime cannot run the model.", logging.WARNING)
            return
        # NOTE: ONNX Runtime's exceptions have no common base class but Exception.
        first = str(error).strip().splitlines()[0]
        if path is not None:
            # NOTE: the folder's name is another one in each run, and a finding must stay the same.
            first = first.replace(f"{path.parent}/", "")
        raise context.fail(RuntimeRejected(error=first), at=locations.at_onnx_node(str(error), model), cause=error) from error
    try:
        expected = _eager(prepared.program, request)
    except Exception as error:
        at = locations.at_exception(error, request.model if isinstance(request.model, torch.nn.Module) else None)
        at = at if at.location is not None else Evidence(locations.module_definition(request.model))
        raise context.fail(EagerFailed(error=f"{type(error).__name__}: {error}"), at=at, cause=error) from error
    compared = [compare(got, want) for got, want in zip(actual, expected, strict=True)]
    if _any_differ(compared) and _any_differ([compare(*pair) for pair in zip(_eager(prepared.program, request), expected, strict=True)]):
        context.event("The outputs were not compared: eager PyTorch gives other ones in each run.", logging.WARNING)
        return
    for value, (difference, tolerance) in zip(model.graph.outputs, compared, strict=True):
        if difference > tolerance:
            context.report(
                OutputsDiffer(output=value.name or "", difference=difference, tolerance=tolerance),
                at=_first_difference(model, prepared, inputs, write) or _other_way(prepared) or locations.module_definition(request.model),
            )
    worst = max((difference for difference, _ in compared), default=0.0)
    context.event(f"{len(expected)} outputs were compared with eager PyTorch; they differ by at most {worst:.3g}.")


def _missing_kernel(error: Exception, model: ir.Model) -> KernelMissing | None:
    """The finding about a node that ONNX Runtime does not implement, if that is what `error` says by its type."""
    if type(error).__name__ != "NotImplemented" or not type(error).__module__.startswith("onnxruntime."):
        return None
    node = locations.onnx_node(str(error), model)
    if node is None:
        return None
    dtypes = dict.fromkeys(value.dtype.name for value in (*node.inputs, *node.outputs) if value is not None and value.dtype is not None)
    return KernelMissing(operator=node.op_type, dtypes=tuple(dtypes))


def _any_differ(compared: Sequence[tuple[float, float]]) -> bool:
    return any(difference > tolerance for difference, tolerance in compared)


def compare(got: torch.Tensor, want: torch.Tensor) -> tuple[float, float]:
    """How far two tensors are apart, and how far they may be.

    Returns:
        The largest of `|got - want| / (1 + |want|)` over the elements, and the tolerance for it. Different shapes or dtypes, and NaN on
        one side only, are infinitely far apart.
    """
    if want.is_complex():
        want = torch.view_as_real(want.resolve_conj())
    tolerance = TOLERANCES.get(want.dtype, 0.0)
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf"), tolerance
    left, right = got.double(), want.detach().cpu().double()
    apart = (left - right).abs() / (1 + right.abs())
    same = (left == right) | (left.isnan() & right.isnan())
    apart = torch.where(same, 0.0, torch.nan_to_num(apart, nan=float("inf"), posinf=float("inf")))
    return (float(apart.max()) if apart.numel() else 0.0), tolerance


def _eager(program: torch.export.ExportedProgram, request: Request) -> list[torch.Tensor]:
    model = program.module() if isinstance(request.model, torch.export.ExportedProgram) else request.model
    # NOTE: on copies, since a model may write to its inputs. In the grad mode of the capture: torch's fast paths for inference, such as
    # that of nn.TransformerEncoder, give other numbers where the input is padded.
    args, kwargs = copy.deepcopy((request.args, dict(request.kwargs)))
    with loop_gradients.left_out():
        results = model(*args, **kwargs)
    leaves = pytree.tree_leaves(results)
    return [leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf) for leaf in leaves if not isinstance(leaf, str | None)]


def _other_way(prepared: Prepared) -> Evidence | None:
    """Where the model asks what phase or what time it is: it computes something else then than it did for the capture."""
    ran = volatile_calls.frames(prepared.program)
    asked = [*volatile_calls.phases(ran), *volatile_calls.clocks(ran)]
    return Evidence(asked[0].place.saying("the answer is another one than during capture")) if asked else None


def _first_difference(model: ir.Model, prepared: Prepared, inputs: Sequence[Any], write: sessions.Write) -> Evidence | None:
    """Where the first value stands that differs, in the order of the graph; values that the clean-up removed are not compared."""
    values = {value.meta[locations.FX_NODE]: value for node in model.graph for value in node.outputs if locations.FX_NODE in value.meta}
    outputs = list(model.graph.outputs)
    model.graph.outputs.extend(value for value in values.values() if value not in outputs)
    try:
        probe = sessions.session(model, write=write)
        got = dict(zip((each.name for each in probe.get_outputs()), sessions.run(probe, inputs), strict=True))
    finally:
        while len(model.graph.outputs) > len(outputs):
            model.graph.outputs.pop()
    want = _intermediate_values(prepared, inputs)
    for node in prepared.graph_module.graph.nodes:
        if node in values and node in want:
            difference, tolerance = compare(got[values[node].name], want[node])
            if difference > tolerance:
                return locations.at_node(node)
    return None


def _intermediate_values(prepared: Prepared, inputs: Sequence[Any]) -> Mapping[torch.fx.Node, torch.Tensor]:
    values: dict[torch.fx.Node, torch.Tensor] = {}

    class Keeping(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            if isinstance(result, torch.Tensor):
                values[n] = result.clone()
            return result

    program = prepared.program
    weights = {**program.state_dict, **program.constants}
    given = iter(inputs)
    flat = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is torch.export.graph_signature.InputKind.USER_INPUT:
            constant = isinstance(spec.arg, torch.export.graph_signature.ConstantArgument)
            flat.append(spec.arg.value if constant else copy.deepcopy(next(given)))
        else:
            flat.append(weights[spec.target or ""])
    with torch.no_grad():
        Keeping(prepared.graph_module).run(*flat)
    return values
