"""Removes nodes that an ONNX graph does not need."""

from __future__ import annotations

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry


def remove_unused(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Removes nodes whose results nobody uses."""
    del context, registry
    # NOTE: after functionalization no operator has a side effect, not even one that torch calls impure, such as `aten.bernoulli`.
    # `eliminate_dead_code` of torch checks the whole graph first, which takes longer than the removal.
    for node in reversed(module.graph.nodes):
        if not node.users and node.op not in ("placeholder", "output"):
            module.graph.erase_node(node)
