"""The path of a finding from the source line through the graphs of an export, and those graphs as text."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping

GRAPHS = ("captured", "prepared", "onnx")
"""Names of the graphs of an export: as captured, after the passes, and as ONNX."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One step on the path.

    Attributes:
        message: What the step is, such as `captured as aten.relu.default (FX node relu)`. If it is empty, the graph's text describes the
            step, and a node that the text lacks makes no step.
        graph: Name of the graph with the step; empty for the source line.
        node: Name of the node in that graph.
    """

    message: str
    graph: str = ""
    node: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class GraphText:
    """A graph as text, one line per node.

    Attributes:
        name: Name of the graph, from `GRAPHS`.
        text: The lines.
        nodes: For each node name its line (from 1) and its description.
    """

    name: str
    text: str
    nodes: Mapping[str, tuple[int, str]]


def graphs_folder(log: pathlib.Path) -> pathlib.Path:
    """The folder for the graphs of the log at `log`, beside that log."""
    return log.with_suffix(".graphs")
