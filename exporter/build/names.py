"""The names of all values and nodes of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from onnxplain.diagnostics import Confidence, DiagnosticContext, Evidence, Fix
from onnxplain.request import Request
from onnxplain.rules import NameChanged, NameUnused
from onnxplain.source import call_sites, locations
from onnxplain.weights import Weight


def name_values(context: DiagnosticContext, model: ir.Model, request: Request) -> None:
    """Gives every value of the model a different name.

    Inputs and outputs choose first, then weights. Reports names that the user asked for and that no value got.
    """
    graph = model.graph
    taken = dict.fromkeys(name_inputs_and_outputs(graph.inputs, graph.outputs, request))

    def name(value: ir.Value, wanted: str) -> None:
        value.name = unused(wanted, taken)
        taken[value.name] = None

    _report_names(context, request, "input", graph.inputs, request.input_names)
    _report_names(context, request, "output", graph.outputs, request.output_names)
    initializers = list(graph.initializers.values())
    named = {id(value) for value in (*graph.inputs, *graph.outputs, *initializers)}
    for value in initializers:
        graph.initializers.pop(value.name)  # type: ignore[arg-type]  # a registered initializer has a name
        name(value, wanted := value.name or "weight")
        graph.register_initializer(value)
        if value.name != wanted and isinstance(value.const_value, Weight):
            _report_weight(context, request, wanted, value.name or "")
    for value in (value for subgraph in graph.subgraphs() for value in subgraph.inputs):
        name(value, value.name or "input")
    for node in graph.all_nodes():
        for value in node.outputs:
            if id(value) not in named:
                name(value, value.name or f"{node.op_type.lower()}_{len(taken)}")
        node.name = f"{node.op_type}_{node.outputs[0].name}"


def name_inputs_and_outputs(inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], request: Request) -> list[str]:
    """Gives every input and output a different name, the user's if there is one, and returns the names."""
    taken: dict[str, None] = {}
    for kind, values, names in (("input", inputs, request.input_names), ("output", outputs, request.output_names)):
        for index, value in enumerate(values):
            value.name = unused((names[index] if index < len(names) else None) or value.name or f"{kind}_{index}", taken)
            taken[value.name] = None
    return list(taken)


def unused(wanted: str, taken: Mapping[str, object]) -> str:
    """`wanted`, with a number behind it if it is taken."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _report_names(context: DiagnosticContext, request: Request, kind: str, values: Sequence[ir.Value], names: Sequence[str]) -> None:
    """Reports names without a value, and values that have another name than the user asked for."""
    for spare in names[len(values) :]:
        at, fix = _names_at(request, kind, names, len(values))
        context.report(NameUnused(kind=kind, name=spare, count=len(values)), at=at, fixes=[fix])
    for value, asked in zip(values, names, strict=False):
        if asked and value.name != asked:
            at, _ = _names_at(request, kind, names, len(values))
            context.report(NameChanged(kind=kind, asked=asked, given=value.name or ""), at=at)


def _report_weight(context: DiagnosticContext, request: Request, asked: str, given: str) -> None:
    """Reports a weight whose name an input or an output has."""
    kind, names = next(
        ((kind, names) for kind, names in (("input", request.input_names), ("output", request.output_names)) if asked in names), ("", ())
    )
    fix = Fix("Give the input or output another name: the weight then keeps the name that it has in a state dict.", Confidence.GUESS)
    at = _names_at(request, kind, names, len(names))[0] if kind else Evidence(locations.module_definition(request.model) or request.caller)
    context.report(NameChanged(kind="weight", asked=asked, given=given), at=at, fixes=[fix])


def _names_at(request: Request, kind: str, names: Sequence[str], count: int) -> tuple[Evidence, Fix]:
    """Where `input_names` or `output_names` are written, and the fix that keeps `count` of them."""
    place = call_sites.argument(request, f"{kind}_names", lambda node: call_sites.literal(node) in (list(names), tuple(names)))
    fewer = list(names[:count])
    edits = () if place is None else place.replaced(repr(fewer))
    fix = Fix("Give as many names as there are values.", Confidence.SAFE, edits, "" if edits else f"{kind}_names={fewer!r}")
    return call_sites.at(place, request), fix
