"""Python loops that became as many operators as they have rounds."""

from __future__ import annotations

import collections

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.rules import LoopUnrolled
from onnxplain.source import locations

_MANY = 100
"""Rounds from which on it is worth a word."""


def report(context: DiagnosticContext, program: torch.export.ExportedProgram) -> None:
    """Reports each line of the user's that made one operator very often, within one module."""
    made: collections.defaultdict[tuple[object, ...], list[torch.fx.Node]] = collections.defaultdict(list)
    for node in program.graph.nodes:
        if node.op == "call_function" and node.meta.get("stack_trace"):
            # NOTE: equal text stands for equal frames, and is cheaper to compare.
            made[node.target, node.meta["stack_trace"], str(node.meta.get("nn_module_stack"))].append(node)
    lines: set[object] = set()
    for nodes in made.values():
        if len(nodes) < _MANY:
            continue
        at = locations.at_node(nodes[0])
        place = at.location and (at.location.file, at.location.line)
        if place and locations.is_users(place[0]) and place not in lines:
            lines.add(place)
            context.report(LoopUnrolled(rounds=len(nodes)), at=at)
