"""The outputs of the model."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch
from torch.export.graph_signature import OutputKind

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.dispatch import Plan
from onnxplain.request import Request, output_names
from onnxplain.rules import ComplexAsReal, ConstantOutput, OutputLeftOut
from onnxplain.source import locations

from .names import name_inputs_and_outputs
from .nodes import NodeBuilder


def graph_outputs(
    context: DiagnosticContext, plan: Plan, request: Request, nodes: NodeBuilder, inputs: Sequence[ir.Value]
) -> tuple[list[ir.Value], list[ir.Node]]:
    """The outputs, and the Identity nodes that some of them need. The `inputs` and the outputs have the names of the exported model then.

    Reports outputs that ONNX cannot have, complex outputs, and outputs that are the same for all inputs.

    Raises:
        StageFailed: No output is left. ONNX Runtime loads no such model.
    """
    (results,) = plan.prepared.graph_module.graph.output_node().args
    assert isinstance(results, list | tuple)
    specs = plan.prepared.program.graph_signature.output_specs
    wanted = [result for result, spec in zip(results, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    names = output_names(plan.prepared.program)
    names = names if len(names) == len(wanted) else [""] * len(wanted)
    kept = [result for result in wanted if not isinstance(result, str | None)]
    left_out = tuple(repr(result) for result in wanted if isinstance(result, str | None))
    if not kept:
        values = left_out or (_empty(plan.prepared.program),)
        raise context.fail(OutputLeftOut(values=values), at=locations.last_return(request.model))
    if left_out:
        context.report(OutputLeftOut(values=left_out), at=locations.last_return(request.model))
    outputs, copies = nodes.outputs(kept)
    kept_names = [name for name, result in zip(names, wanted, strict=True) if not isinstance(result, str | None)]
    for value, name in zip(outputs, kept_names, strict=True):
        value.name = name or value.name
    # NOTE: before the findings, which name the outputs.
    name_inputs_and_outputs(inputs, outputs, request)
    for result, value in zip(kept, outputs, strict=True):
        if isinstance(result, torch.fx.Node) and isinstance(known := result.meta.get("val"), torch.Tensor) and known.is_complex():
            context.report(ComplexAsReal(kind="output", name=value.name or ""), at=locations.at_node(result))
        node = value.producer()
        made = node.inputs[0] if node is not None and node.op_type == "Identity" else value
        if made is not None and made.const_value is not None:
            at = locations.at_node(result) if isinstance(result, torch.fx.Node) else locations.last_return(request.model)
            context.report(ConstantOutput(name=value.name or ""), at=at)
    return outputs, copies


def _empty(program: torch.export.ExportedProgram) -> str:
    """The result of a program that returns a container without parts, as Python code."""
    structure = program.call_spec.out_spec
    return "()" if structure is None else f"{structure.type.__name__}()"
