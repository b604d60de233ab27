"""The clean-up of the ONNX graph: its passes in order."""

from __future__ import annotations

import collections
import logging
from collections.abc import Callable

import onnx_ir as ir
from onnx_ir.passes import common

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.recording import RANDOM

from . import batch_norm, factors, layouts, padding, precompute, reshapes

Step = Callable[[ir.Model], object]


def _remove_unused_nodes(model: ir.Model) -> None:
    common.RemoveUnusedNodesPass()(model)


_STEPS: tuple[Step, ...] = (
    _remove_unused_nodes,  # an unused user of a value would end its chain
    batch_norm.batch_norm_into_conv,
    padding.pad_into_conv,
    precompute.precompute,
    factors.join_factors,
    layouts.merge_layouts,
    reshapes.known_rest,
)
"""What clean-up does first, in order."""


def optimize(context: DiagnosticContext, model: ir.Model) -> None:
    """Cleans up the graph and records how many nodes are left; at DEBUG also what each step removed and added."""
    before = sum(1 for _ in model.graph.all_nodes())
    told = _Told(context, model) if context.records(logging.DEBUG) else None
    clean_up(model, told)
    context.event(f"{sum(1 for _ in model.graph.all_nodes())} of {before} ONNX nodes are left.")


def clean_up(model: ir.Model, done: Callable[[str], None] | None = None) -> None:
    """Removes nodes that only rearrange weights, that compute the same as another node, or that nobody uses.

    A model with functions stays as it is.

    Args:
        model: The model.
        done: Called with the name of each step after it.
    """
    if model.functions:
        return
    types = [(value.type, value.shape) for value in model.graph.outputs]
    # NOTE: only Identity nodes that make outputs are left, so there is no step for them. That of onnx_ir would also remove them from
    # branches, whose outputs would then come from the outer graph (read in 1.1).
    for step in (*_STEPS, _merge_equal_nodes, _remove_unused_nodes):
        step(model)
        if done is not None:
            done(step.__name__.lstrip("_"))
    # NOTE: an inner value that replaces an equal output has no shape yet.
    for value, (type_, shape) in zip(model.graph.outputs, types, strict=True):
        value.type, value.shape = type_, shape


def _merge_equal_nodes(model: ir.Model) -> None:
    # NOTE: onnx_ir's pass merges two equal Bernoulli nodes (read in 1.1), but they are two draws.
    if not any(node.op_type in RANDOM for node in model.graph.all_nodes()):
        common.CommonSubexpressionEliminationPass()(model)


class _Told:
    """Records what a step changed, by the operators before and after it."""

    def __init__(self, context: DiagnosticContext, model: ir.Model) -> None:
        self._context = context
        self._model = model
        self._before = self._counts()

    def __call__(self, step: str) -> None:
        before, after = self._before, self._counts()
        self._before = after
        if before != after:
            parts = (("removed", before - after), ("added", after - before))
            changes = (f"{verb} {', '.join(f'{n} {op}' for op, n in counts.most_common())}" for verb, counts in parts if counts)
            text = f"{step} {' and '.join(changes)}: {before.total()} ONNX nodes became {after.total()}."
            self._context.event(text, logging.DEBUG)

    def _counts(self) -> collections.Counter[str]:
        return collections.Counter(node.op_type for node in self._model.graph.all_nodes())
