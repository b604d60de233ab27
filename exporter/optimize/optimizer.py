"""The clean-up of the ONNX graph: its passes in order."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.recording import RANDOM

from . import batch_norm, layouts, padding, precompute


def optimize(context: DiagnosticContext, model: ir.Model) -> None:
    """Cleans up the graph and records how many nodes are left."""
    before = sum(1 for _ in model.graph.all_nodes())
    clean_up(model)
    context.event(f"{sum(1 for _ in model.graph.all_nodes())} of {before} ONNX nodes are left.")


def clean_up(model: ir.Model) -> None:
    """Removes nodes that only rearrange weights, that compute the same as another node, or that nobody uses."""
    types = [(value.type, value.shape) for value in model.graph.outputs]
    batch_norm.batch_norm_into_conv(model)
    padding.pad_into_conv(model)
    precompute.precompute(model)
    layouts.merge_layouts(model)
    # NOTE: only Identity nodes that make outputs are left, so there is no pass for them. That of onnx_ir would also remove them from
    # branches, whose outputs would then come from the outer graph (read in 1.1).
    # NOTE: onnx_ir's pass merges two equal Bernoulli nodes (read in 1.1), but they are two draws.
    if not any(node.op_type in RANDOM for node in model.graph.all_nodes()):
        common.CommonSubexpressionEliminationPass()(model)
    common.RemoveUnusedNodesPass()(model)
    # NOTE: an inner value that replaces an equal output has no shape yet.
    for value, (type_, shape) in zip(model.graph.outputs, types, strict=True):
        value.type, value.shape = type_, shape
