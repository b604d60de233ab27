"""The part of a graph around a finding, for sinks to draw."""

from __future__ import annotations

import dataclasses

LEFT_OUT = "..."
"""Label of a node that stands for all that are left out at its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph.

    Attributes:
        id: Its name; no other node of the graph has it.
        label: What it is, such as an operator or an input; or `LEFT_OUT`.
        value: Dtype and shape of what it gives, such as `float32[batch, 3]`; empty where they are unknown.
    """

    id: str
    label: str
    value: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Graph:
    """The neighbourhood of a node.

    Attributes:
        nodes: The nodes.
        edges: What feeds what: the ids of two nodes each.
        blamed: The id of the node that the finding is about.
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    blamed: str
