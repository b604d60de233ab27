"""The part of a graph around a finding, for sinks to draw."""

from __future__ import annotations

import dataclasses

LEFT_OUT = "..."
"""Label of a node that stands for all nodes omitted at its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph.

    Attributes:
        id: Its name, unique within the graph.
        label: What it is, such as an operator or an input; or `LEFT_OUT`.
        value: Dtype and shape of its result, such as `float32[batch, 3]`; empty if unknown.
    """

    id: str
    label: str
    value: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Graph:
    """The nodes around one node.

    Attributes:
        nodes: The nodes.
        edges: Pairs of node ids; the first node feeds the second.
        blamed: The id of the node that the finding is about.
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    blamed: str
