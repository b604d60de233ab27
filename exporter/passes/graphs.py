"""The graphs of a program: its own and those of its control flow operators."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def graph_modules(root: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """`root` and the graphs of its control flow operators, at any depth."""
    return (module for module in root.modules() if isinstance(module, torch.fx.GraphModule))


def all_nodes(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    """The nodes of all graphs of a program."""
    return [node for module in graph_modules(program.graph_module) for node in module.graph.nodes]
