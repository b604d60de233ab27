"""The way of a finding from the user's line through the graphs of an export, and those graphs as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

GRAPHS = ("captured", "prepared", "onnx")
"""Names of the graphs of an export: as captured, with the operators that are translated, and the result."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One step on the way.

    Attributes:
        message: What it is, such as `captured as aten.relu.default (FX node relu)`. Empty leaves it to the graph's text; then there is no
            such step where the text does not have the node.
        graph: Name of the graph that it stands in; empty for the user's line.
        node: Name of the node there.
    """

    message: str
    graph: str = ""
    node: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class GraphText:
    """A graph, a line for each node.

    Attributes:
        name: Which graph it is, out of `GRAPHS`.
        text: The lines.
        nodes: The name of a node to its line (from 1) and what it is there.
    """

    name: str
    text: str
    nodes: Mapping[str, tuple[int, str]]
