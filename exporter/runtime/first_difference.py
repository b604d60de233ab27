"""Where the exported model begins to differ from eager PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.diagnostics import Evidence
from onnxplain.passes import Prepared
from onnxplain.source import locations

from . import eager, sessions
from .comparison import compare, tolerances


def first_difference(model: ir.Model, prepared: Prepared, inputs: Sequence[Any], write: sessions.WriteModel) -> Evidence | None:
    """The place of the first node, in the order of the graph, whose value differs; None if there is none.

    Values that the clean-up removed are not compared.
    """
    values = {value.meta[locations.FX_NODE]: value for node in model.graph for value in node.outputs if locations.FX_NODE in value.meta}
    outputs = list(model.graph.outputs)
    model.graph.outputs.extend(value for value in values.values() if value not in outputs)
    allowed = dict(zip(model.graph.outputs, tolerances(model.graph), strict=True))
    try:
        probe = sessions.session(model, write=write)
        got = dict(zip((each.name for each in probe.get_outputs()), sessions.run(probe, inputs), strict=True))
    finally:
        while len(model.graph.outputs) > len(outputs):
            model.graph.outputs.pop()
    want = eager.intermediate_values(prepared, inputs)
    for node in prepared.graph_module.graph.nodes:
        if node in values and node in want and compare(got[values[node].name], want[node], allowed[values[node]]).differs:
            return locations.at_node(node)
    return None
