"""Replaces the operator that observes and rounds by one that rounds: the observers of an exported program are off."""

from __future__ import annotations

from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import qualified_name
from onnxplain.rules import ObserverOn
from onnxplain.source import locations
from onnxplain.source.fixes import OBSERVERS_OFF

from .graphs import arguments, inherit

_FUSED = "aten::fused_moving_avg_obs_fake_quant"


def remove(context: DiagnosticContext, program: torch.export.ExportedProgram, module: torch.fx.GraphModule) -> None:
    """Replaces each such operator, so that it writes no statistics. Reports an observer that is on.

    Args:
        context: The diagnostics.
        program: The program, which has the values of the switches.
        module: The graph to change, with the inputs of `program`.
    """
    targets = {spec.arg.name: str(spec.target) for spec in program.graph_signature.input_specs}
    fused = [node for node in module.graph.nodes if qualified_name(node.target) == _FUSED]
    for node in fused:
        given = arguments(node)
        name = targets.get(given["observer_on"].name, "")
        if _is_on(program, name):
            path = name.rpartition(".")[0] or "the model"
            context.report(ObserverOn(module=path), at=locations.at_node(node), fixes=(OBSERVERS_OFF,))
        result = given["self"]
        if _is_on(program, targets.get(given["fake_quant_on"].name, "")):
            with module.graph.inserting_before(node):
                result = _rounded(module.graph, given)
            inherit(node, result)
            result.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(result)
        module.graph.erase_node(node)


def _is_on(program: torch.export.ExportedProgram, switch: str) -> bool:
    """The value of a buffer; True if it is not known."""
    value = program.state_dict.get(switch)
    return value is None or bool(value.any())


def _rounded(graph: torch.fx.Graph, given: dict[str, Any]) -> torch.fx.Node:
    scale, limits = (given["scale"], given["zero_point"]), (given["quant_min"], given["quant_max"])
    if given["per_row_fake_quant"]:
        by_channel = torch.ops.aten.fake_quantize_per_channel_affine.default
        return graph.call_function(by_channel, (given["self"], *scale, given["ch_axis"], *limits))
    return graph.call_function(torch.ops.aten.fake_quantize_per_tensor_affine.tensor_qparams, (given["self"], *scale, *limits))
