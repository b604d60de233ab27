"""The module calls that each node of a graph belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx_ir as ir
import torch

from onnxplain.recording import RANDOM
from onnxplain.source import locations
from onnxplain.source.module_calls import ModuleCall, module_calls

from .values import reads

Stack = tuple[ModuleCall, ...]
"""Calls of modules in one another, outermost first, without the call of the model."""


def stacks(graph: ir.Graph, classes: Collection[str] | None, weights: Collection[ir.Value]) -> dict[ir.Node, Stack]:
    """The calls in which each node is, in the order of the graph. That of a translation which stays a function is the innermost.

    Args:
        graph: The graph.
        classes: The names of the classes whose calls count; None for all.
        weights: The initializers that are weights.
    """
    made: dict[ir.Node, Stack] = {}
    before: Stack = ()
    for node in graph:
        origin = node.meta.get(locations.FX_NODE)
        # NOTE: a node without an origin was made to help the next one or the one before, and seldom stands between two modules.
        if isinstance(origin, torch.fx.Node) and (calls := module_calls(origin)):
            before = tuple(call for call in calls if call.path and (classes is None or call.class_name in classes))
        name = node.meta.get(locations.FUNCTION)
        inner = (ModuleCall(f"call {origin.name}", origin.name, name),) if name is not None and isinstance(origin, torch.fx.Node) else ()
        # NOTE: an Identity only gives an output of the model its own name.
        is_name = node.op_type == "Identity" and node.domain == "" and node.outputs[0].is_graph_output()
        made[node] = () if is_name else (*before, *inner)
    return _with_shared_sizes_outside(made, weights)


def _with_shared_sizes_outside(made: dict[ir.Node, Stack], weights: Collection[ir.Value]) -> dict[ir.Node, Stack]:
    """The stacks, in which what several modules compute of sizes alike, and the first of them for all, is outside of them.

    So the first of several equal layers has the structure of the others.
    """
    needs: dict[ir.Node, Stack] = {}
    for node, stack in made.items():
        available = _available(node, made, needs, weights)
        if available is not None and available == stack[: len(available)]:
            needs[node] = available
    moved = dict(made)
    readers: dict[ir.Value, Stack] = {}
    value: ir.Value
    for node in reversed(made):
        if node in needs:
            own = moved[node]
            shared = _common([own, *(readers[value] for value in node.outputs if value in readers)])
            if len(shared) >= len(needs[node]) and not any(value.is_graph_output() for value in node.outputs):
                moved[node] = shared
        for value in reads(node):
            if value.producer() in needs:
                readers[value] = _common([moved[node], readers.get(value, moved[node])])
    return moved


def _available(node: ir.Node, made: Mapping[ir.Node, Stack], needs: Mapping[ir.Node, Stack], weights: Collection[ir.Value]) -> Stack | None:
    """The innermost call that a node has to be in, if it computes something of sizes and constants only; None if it does not."""
    if node.domain or node.op_type in RANDOM:
        return None
    read = reads(node)
    if node.op_type != "Shape" and not any(value.producer() in needs for value in read):
        return None
    if any(value in weights for value in read):
        return None
    sources = [value.producer() for value in read if not value.is_initializer()]
    if node.op_type == "Shape":
        return made[sources[0]] if sources and sources[0] is not None else ()
    known = [needs[source] for source in sources if source is not None and source in needs]
    return max(known, key=len) if known and len(known) == len(sources) else None


def _common(several: list[Stack]) -> Stack:
    """The calls with which all of `several` begin."""
    first = min(several, key=len)
    for index, call in enumerate(first):
        if any(each[index].key != call.key for each in several):
            return first[:index]
    return first
