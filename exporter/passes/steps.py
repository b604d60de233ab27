"""Tells at DEBUG what each pass changed."""

from __future__ import annotations

import collections
import logging

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import qualified_name

from .graphs import graph_modules

_SHOWN = 5


class Steps:
    """Compares the operators of a program before and after each pass. It does nothing unless the log records DEBUG events.

    Args:
        context: It gets the events.
        module: The graph before the first pass.
    """

    def __init__(self, context: DiagnosticContext, module: torch.fx.GraphModule) -> None:
        self._context = context
        self._is_on = context.records(logging.DEBUG)
        self._before = _operators(module) if self._is_on else collections.Counter()

    def tell(self, name: str, module: torch.fx.GraphModule) -> None:
        """Records how many operators the pass `name` removed and added. A pass that changed none gets no event."""
        if not self._is_on:
            return
        before, after = self._before, _operators(module)
        self._before = after
        if before != after:
            changes = [f"{verb} {_listed(counts)}" for verb, counts in (("removed", before - after), ("added", after - before)) if counts]
            counted = f"{before.total()} operators became {after.total()}"
            self._context.event(f"The pass {name} {' and '.join(changes)}: {counted}.", logging.DEBUG)


def _operators(module: torch.fx.GraphModule) -> collections.Counter[str]:
    """The number of calls of each operator, in all graphs."""
    nodes = (node for each in graph_modules(module) for node in each.graph.nodes if node.op == "call_function")
    return collections.Counter(qualified_name(node.target) for node in nodes)


def _listed(counts: collections.Counter[str]) -> str:
    shown = [name if count == 1 else f"{count} {name}" for name, count in counts.most_common(_SHOWN)]
    return ", ".join(shown) + (f" and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else "")
