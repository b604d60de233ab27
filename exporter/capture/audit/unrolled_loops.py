"""Python loops that became separate operators for each iteration."""

from __future__ import annotations

import collections
import operator
from collections.abc import Iterator

import torch

from onnxplain.capture.finding import Finding
from onnxplain.rules import LoopUnrolled
from onnxplain.source import locations

from .finished import Finished

_MANY = 100
"""The number of iterations from which on there is a finding."""


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each of the user's lines that made one operator very often within one module."""
    made: collections.defaultdict[tuple[object, ...], list[torch.fx.Node]] = collections.defaultdict(list)
    for node in finished.nodes:
        # NOTE: `x.unbind()` gives many results at once, without a loop.
        if node.op == "call_function" and node.target is not operator.getitem and node.meta.get("stack_trace"):
            # NOTE: equal text means equal frames, and is cheaper to compare.
            made[node.target, node.meta["stack_trace"], str(node.meta.get("nn_module_stack"))].append(node)
    lines: set[object] = set()
    for nodes in made.values():
        if len(nodes) < _MANY:
            continue
        at = locations.at_node(nodes[0])
        place = at.location and (at.location.file, at.location.line)
        if place and locations.is_users(place[0]) and place not in lines:
            lines.add(place)
            yield Finding(LoopUnrolled(rounds=len(nodes)), at)
