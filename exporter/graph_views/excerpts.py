"""The part of an FX graph around a node, small enough to draw."""

from __future__ import annotations

import torch

from onnxplain.diagnostics import LEFT_OUT, Graph, Node
from onnxplain.request import DimNames

from .labels import label_of, value_of

_STEPS = (("above", 5), ("below", 7), ("above", 9), ("below", 10))
"""The steps of the search, and the largest number of nodes after each. If a step finds fewer, the next one may find more."""
_ABOVE, _BELOW = "(above)", "(below)"
"""The ids of the nodes that stand for omitted ones. No FX node has such a name."""


def around(node: torch.fx.Node, dim_names: DimNames) -> Graph:
    """The inputs and the users of a node, two levels of each.

    Args:
        node: The node.
        dim_names: The names of dynamic dims.

    Returns:
        At most ten nodes, and two more that stand for omitted ones above and below.
    """
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
