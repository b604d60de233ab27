"""Finds the nodes that a graph optimization of ONNX Runtime makes wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.source import locations

from . import sessions
from .comparison import compare, tolerances
from .lockstep import Lockstep
from .parts import Part, last_uses


@dataclasses.dataclass(frozen=True)
class Merged:
    """Nodes whose result an optimization changes.

    Attributes:
        types: Their types, in order.
        node: The FX node that the last of them comes from, if it is known.
    """

    types: tuple[str, ...]
    node: torch.fx.Node | None


def merged_wrongly(model: ir.Model, inputs: Sequence[Any], write: sessions.WriteModel) -> Merged | None:
    """The first nodes that give another result with graph optimizations than without; None if no few nodes alone do.

    Args:
        model: The exported model.
        inputs: Its inputs, flat, without constants.
        write: As for `session`.
    """
    found: list[Merged] = []
    before: list[Part] = []
    nodes = list(model.graph)
    last = last_uses(nodes, {node: index for index, node in enumerate(nodes)}.__getitem__)
    search = _Search(model, write, {node: index for index, node in enumerate(nodes)}, last)

    def look(part: Part, values: Mapping[ir.Value, torch.Tensor]) -> None:
        # NOTE: two parts together, since an optimization may merge nodes on both sides of a border.
        window = [*(before[-1].nodes if before else ()), *part.nodes]
        before[:] = [part]
        if not found and (merged := search.within(window, values)) is not None:
            found.append(merged)

    steps = Lockstep(model, inputs, model.graph.outputs, write, on_part=look, optimized=False, memory=2)
    steps.finish()
    return found[0] if found else None


@dataclasses.dataclass(frozen=True)
class _Search:
    model: ir.Model
    write: sessions.WriteModel
    numbers: Mapping[ir.Node, int]
    last: Mapping[ir.Value, int]

    def within(self, window: Sequence[ir.Node], values: Mapping[ir.Value, torch.Tensor]) -> Merged | None:
        """The fewest neighbours in `window` that an optimization makes wrong; None if it makes none wrong."""
        if not self._moved(window, values):
            return None
        inner = [value for node in window for value in node.outputs if value.name and not isinstance(value.type, ir.SequenceType)]
        every = {**values, **Part.of(self.model.graph, window, inner).run(self.model, values, self.write, optimized=False)}
        end = _first(len(window), lambda count: self._moved(window[:count], every))
        begin = _first(end, lambda count: not self._moved(window[count:end], every)) - 1
        culprits = window[begin:end]
        made_from = (node.meta.get(locations.FX_NODE) for node in reversed(culprits))
        types = tuple(node.op_type for node in culprits if node.op_type != "Constant")
        return Merged(types, next((each for each in made_from if each is not None), None))

    def _moved(self, nodes: Sequence[ir.Node], values: Mapping[ir.Value, torch.Tensor]) -> bool:
        """Whether graph optimizations move a result of nodes further than rounding."""
        if not nodes:
            return False
        until = self.numbers[nodes[-1]]
        made = [value for node in nodes for value in node.outputs]
        part = Part.of(self.model.graph, nodes, [value for value in made if value.is_graph_output() or self.last.get(value, -1) > until])
        if not part.outputs or not all(value in values for value in part.inputs):
            return False
        plain, merged = (part.run(self.model, values, self.write, optimized=each) for each in (False, True))
        allowed = tolerances(self.model.graph, part.outputs)
        return any(compare(merged[value], plain[value], limit).differs for value, limit in zip(part.outputs, allowed, strict=True))


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The smallest number from 1 to `count` for which `holds`, as it does for all larger ones."""
    low, high = 1, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
