"""Removes nodes that an ONNX graph does not need."""

from __future__ import annotations

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry, qualified_name

_CHECKS = frozenset(
    {
        "aten::_assert_async.msg",
        "aten::_assert_async",
        "aten::_assert_scalar",
        "aten::_assert_tensor_metadata",
        "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size",
        "_operator::assert_",
        "torch::_check",
    }
)


def remove_checks(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Removes run-time checks: ONNX has no operator that stops a run."""
    del registry
    removed = 0
    for node in list(module.graph.nodes):
        if node.op == "call_function" and qualified_name(node.target) in _CHECKS and not node.users:
            module.graph.erase_node(node)
            removed += 1
    if removed:
        context.event(f"{removed} run-time checks were removed; ONNX has no operator that stops a run.")


def remove_unused(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Removes nodes whose results nobody uses."""
    del context, registry
    # NOTE: after functionalization no operator has a side effect, not even one that torch calls impure, such as `aten.bernoulli`.
    module.graph.eliminate_dead_code(is_impure_node=lambda node: node.op in ("placeholder", "output"))
