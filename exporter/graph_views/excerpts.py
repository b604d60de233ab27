"""The part of an FX graph around a node, small enough to be drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from onnxplain.diagnostics import LEFT_OUT, Graph, Node
from onnxplain.request import DimNames
from onnxplain.torch_internals.operators import OpOverload

# NOTE: totals, so that the room that one step leaves is the next one's.
_STEPS = (("above", 5), ("below", 7), ("above", 9), ("below", 10))
"""Up from the node and down, twice: how many nodes there may be after each step."""
_ABOVE, _BELOW = "(above)", "(below)"
"""Ids of the nodes that stand for what is left out: no FX node has such a name."""
_VALUE_LIMIT = 3


def around(node: torch.fx.Node, dim_names: DimNames) -> Graph:
    """What feeds `node` and what it feeds, two levels each: at most ten nodes, and two that stand for what is left out."""
    reached = {"above": [node], "below": [node]}
    ends = {"above": [node], "below": [node]}
    shown = {node: None}
    for direction, total in _STEPS:
        found = (each for end in ends[direction] for each in (end.all_input_nodes if direction == "above" else end.users))
        ends[direction] = list(dict.fromkeys(each for each in found if each not in shown))[: total - len(shown)]
        reached[direction] += ends[direction]
        shown.update(dict.fromkeys(ends[direction]))
    edges = [(source.name, each.name) for each in shown for source in each.all_input_nodes if source in shown]
    edges += [(_ABOVE, each.name) for each in reached["above"] if any(source not in shown for source in each.all_input_nodes)]
    edges += [(each.name, _BELOW) for each in reached["below"] if any(user not in shown for user in each.users)]
    ends_of_edges = {id for edge in edges for id in edge}
    nodes = [Node(each.name, label_of(each), value_of(each.meta.get("val"), dim_names)) for each in shown]
    nodes += [Node(id, LEFT_OUT) for id in (_ABOVE, _BELOW) if id in ends_of_edges]
    return Graph(tuple(nodes), tuple(edges), node.name)


def label_of(node: torch.fx.Node) -> str:
    """What a node is: its operator, or its part in the graph."""
    if node.op != "call_function":
        return {"placeholder": "input", "get_attr": "constant"}.get(node.op, node.op)
    target = node.target
    return str(target) if isinstance(target, OpOverload) else getattr(target, "__name__", str(target))


def value_of(value: Any, dim_names: DimNames) -> str:
    """Dtype and shape of a fake value; those of the first few of a list."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(str(dim_names.of(size)) for size in value.shape)}]"
    if isinstance(value, list | tuple):
        return _joined((value_of(each, dim_names) for each in value[:_VALUE_LIMIT]), more=len(value) > _VALUE_LIMIT)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return dim_names.text(value.node.expr)
    return ""


def _joined(texts: Iterable[str], *, more: bool) -> str:
    return ", ".join([*filter(None, texts), *([LEFT_OUT] if more else [])])
