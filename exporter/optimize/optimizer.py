"""Cleans up the ONNX graph."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.recording import folding

from . import batch_norm, precompute


def optimize(context: DiagnosticContext, model: ir.Model) -> None:
    """Cleans up the graph and tells how much is left of it."""
    before = sum(1 for _ in model.graph.all_nodes())
    clean_up(model)
    context.event(f"{sum(1 for _ in model.graph.all_nodes())} of {before} ONNX nodes are left.")


def clean_up(model: ir.Model) -> None:
    """Computes ahead what depends on weights only; removes what does nothing, nobody uses or is there twice. Linear in the graph."""
    types = [(value.type, value.shape) for value in model.graph.outputs]
    batch_norm.batch_norm_into_conv(model)
    precompute.precompute(model)
    # NOTE: no Identity is left but those that make outputs. onnx_ir's pass would remove them from branches, too, whose outputs would then
    # come from the graph around (read in 1.1).
    # NOTE: onnx_ir's pass takes two equal Bernoullis for one (read in 1.1), but they are two draws.
    if not any(node.op_type in folding.RANDOM for node in model.graph.all_nodes()):
        common.CommonSubexpressionEliminationPass()(model)
    common.RemoveUnusedNodesPass()(model)
    # NOTE: where an output turns out to equal an inner value, that value takes its place, but has no shape of its own.
    for value, (type_, shape) in zip(model.graph.outputs, types, strict=True):
        value.type, value.shape = type_, shape
