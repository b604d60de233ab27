"""Builds the model: inputs and weights, nodes, outputs, names."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version

import onnx_ir as ir
import torch

from onnxplain.diagnostics import Confidence, DiagnosticContext, Fix
from onnxplain.dispatch import Plan
from onnxplain.opset import BUILT, bring_to
from onnxplain.recording import Recorder, recording
from onnxplain.request import DimNames, Request
from onnxplain.rules import NameChanged

from .inputs_and_weights import Given, inputs_and_weights
from .names import name_values, unused
from .nodes import NodeBuilder
from .outputs import graph_outputs
from .value_types import ValueTypes


@dataclasses.dataclass(frozen=True)
class Built:
    """A model, and what it takes to add the nodes that were left out.

    Attributes:
        model: The model.
        values: The ONNX values for the weights and inputs of the program, also for weights that the model does not need.
        origin: Makes the `metadata_props` of the ONNX nodes for an FX node.
    """

    model: ir.Model
    values: Mapping[torch.fx.Node, ir.Value]
    origin: Callable[[torch.fx.Node], dict[str, str]]


def build(
    context: DiagnosticContext, plan: Plan, request: Request, dim_names: DimNames, left_out: Mapping[torch.fx.Node, torch.fx.Node]
) -> Built:
    """Builds the model. Its values are named after the FX nodes, its initializers after the model's parameters and buffers.

    Args:
        context: The context.
        plan: The program, and the translations of its operators.
        request: The export.
        dim_names: The names of dims.
        left_out: FX nodes that the model does not get nodes for. Each is read as if it were another node, which comes before it.
    """
    nodes = NodeBuilder(context, plan, Recorder(max(request.opset_version, BUILT)), ValueTypes(dim_names), left_out)
    others = any(call.translation.origin != "onnxplain" for call in plan.calls.values())
    with recording(nodes.recorder, onnxscript=others):
        given = inputs_and_weights(context, plan, request, nodes.types)
        graph = _graph(context, plan, request, nodes, given)
    if nodes.failed or plan.untranslated:
        raise context.stop()
    model = ir.Model(graph, ir_version=10, producer_name="onnxplain", producer_version=version("onnxplain"))
    name_values(context, model, request)
    for asked, name in dim_names.dropped.items():
        context.report(NameChanged(kind="dim", asked=asked, given=name), at=request.caller, fixes=[_with_name(asked, name)])
    for asked, name in dim_names.renamed.items():
        context.report(NameChanged(kind="dim", asked=asked, given=name), at=request.caller, fixes=[_IDENTIFIER])
    bring_to(context, model, request)
    if context.records(logging.DEBUG):
        made = sum(1 for _ in graph.all_nodes())
        values = f"{len(graph.inputs)} inputs, {len(graph.outputs)} outputs, {len(graph.initializers)} initializers"
        text = f"{len(plan.calls)} operators became {made} ONNX nodes, with {values}"
        context.event(f"{text}, opset {model.opset_imports.get('')}.", logging.DEBUG)
    return Built(model, given.values, nodes.origins.of)


_IDENTIFIER = Fix("Name the dim with an identifier: sizes of the exported model are expressions of such names.", Confidence.SAFE)


def _with_name(asked: str, given: str) -> Fix:
    """The fix for a dim whose size already has the name `given`, which may be an expression such as `n + 1`."""
    if given.isidentifier():
        return Fix("Use one name for both dims: they always have the same size.", Confidence.SAFE)
    if (linear := re.fullmatch(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?", given)) is None or not linear[2].isidentifier():
        return Fix(f"Give the dim '{asked}' no name: its size always follows from others.", Confidence.SAFE)
    factor, root, sign, offset = linear.groups()
    expression = f"{f'{factor} * ' if factor else ''}{root}{f' {sign} {offset}' if sign else ''}"
    snippet = f'{root} = torch.export.Dim("{root}")\n{asked} = {expression}'
    return Fix(f"State in dynamic_shapes that '{asked}' is always '{given}', with Dims.", Confidence.SAFE, snippet=snippet)


def _graph(context: DiagnosticContext, plan: Plan, request: Request, nodes: NodeBuilder, given: Given) -> ir.Graph:
    nodes.values.update(given.values)
    made = nodes.of(plan.prepared.graph_module)
    outputs, copies = graph_outputs(context, plan, request, nodes, given.inputs)
    graph = ir.Graph(given.inputs, outputs, nodes=[*made, *copies], name="main_graph")
    for value in (*given.weights, *nodes.recorder.constants.values()):
        if value.uses() and value.name is not None:
            value.name = unused(value.name, graph.initializers)
            graph.register_initializer(value)
    return graph
