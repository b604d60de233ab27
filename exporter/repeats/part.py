"""Runs that were found in the graph of a program, in the part of it without the blocks that are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from onnxplain.passes import Prepared

from .run import Run


def within(prepared: Prepared, runs: Sequence[Run]) -> tuple[Run, ...] | None:
    """The runs with the nodes of a prepared part.

    Args:
        prepared: What `passes.run_without` made of the program. Its nodes have the names that they have in the program.
        runs: Runs in the graph of the program.

    Returns:
        The runs; None if passes changed the operators of a block. Only they know what would become of those in the blocks left out.
    """
    captured = {node.name for node in prepared.program.graph.nodes}
    left = {node.name: node for node in prepared.graph_module.graph.nodes}
    if any(node.name in left for run in runs for index in run.copied for node in run.blocks[index]):
        return None
    place = {name: index for index, name in enumerate(left)}
    made = [index for name, index in place.items() if name not in captured]
    for run in runs:
        kept = [node for index in run.built for node in run.blocks[index] if node.name in left]
        places = [place[node.name] for node in kept]
        if any(min(places) < each < max(places) for each in made) or any(left[node.name].target is not node.target for node in kept):
            return None
    return tuple(_within(left, run) for run in runs)


def _within(left: dict[str, torch.fx.Node], run: Run) -> Run:
    """The run with the nodes that are left. A node that passes removed became nothing in ONNX."""
    blocks = list(run.blocks)
    for place in run.built:
        blocks[place] = [left.get(node.name, node) for node in run.blocks[place]]
    return dataclasses.replace(run, blocks=blocks, given=[[left[node.name] for node in each] for each in run.given])
