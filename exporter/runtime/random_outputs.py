"""Which outputs of an exported model depend on the random numbers that it draws."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnxplain.diagnostics import Evidence
from onnxplain.recording import RANDOM
from onnxplain.source import locations


def random_outputs(graph: ir.Graph) -> list[Evidence | None]:
    """For each output of `graph` that depends on random numbers, the place of the first draw that it depends on; None for the others."""
    drawn: dict[ir.Value, Evidence] = {}
    _spread(graph, drawn)
    return [drawn.get(value) for value in graph.outputs]


def _spread(nodes: Iterable[ir.Node], drawn: dict[ir.Value, Evidence]) -> Evidence | None:
    """Notes the draw for every value of `nodes` that depends on one. Returns the first."""
    first = None
    for node in nodes:
        found = next((drawn[value] for value in node.inputs if value in drawn), None)
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                found = found or _spread(attribute.as_graph(), drawn)
        if found is None and node.op_type in RANDOM:
            found = Evidence()
        if found is not None and found.location is None:
            # NOTE: of the nodes that one operator becomes, only the last one tells its line.
            made = [value.meta[locations.FX_NODE] for value in node.outputs if locations.FX_NODE in value.meta]
            found = locations.at_node(made[0]) if made else found
        if found is not None:
            drawn.update(dict.fromkeys(node.outputs, found))
            first = first or found
    return first
