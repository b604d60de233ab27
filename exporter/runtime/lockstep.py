"""Runs an exported model part by part, so that each of its values can be looked at without keeping all of them in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import onnx_ir as ir
import torch

from onnxplain.memory import bound, size_of

from . import sessions
from .parts import Part, is_weight, last_uses, tensor_of

_NODES = 48
_BYTES = 128 * 2**20
"""The most nodes of a part, and the most bytes of its values: a part keeps all of its values that count until it has run."""

OnPart = Callable[[Part, Mapping[ir.Value, torch.Tensor]], None]
"""Called after each part ran, with the values that are known then."""


class Lockstep:
    """The values of an exported model for given inputs, in the order of its graph.

    ONNX Runtime runs each part once, when one of its values is first asked for. A value stays as long as a later part takes it, or until it
    is released.

    Args:
        model: The model, without functions.
        inputs: Its inputs, flat, without constants.
        shown: The values that are asked for. Nothing merges the nodes on both sides of them.
        write: As for `session`.
        on_part: Called after each part.
        optimized: Whether ONNX Runtime optimizes the parts.
        memory: How many of the last parts still have all that they took.

    Attributes:
        values: The values that are known now.
        runs: The number of parts that ran.
    """

    def __init__(
        self,
        model: ir.Model,
        inputs: Sequence[torch.Tensor | complex],
        shown: Collection[ir.Value],
        write: sessions.WriteModel,
        *,
        on_part: OnPart | None = None,
        optimized: bool = True,
        memory: int = 1,
    ) -> None:
        self._model = model
        self._write = write
        self._on_part = on_part
        self._optimized = optimized
        self._memory = memory
        self.values = dict(zip(model.graph.inputs, map(torch.as_tensor, inputs), strict=True))
        self.runs = 0
        shapes = {value.name or "": tuple(tensor.shape) for value, tensor in self.values.items()}
        sizes = bound(model, shapes)
        self._parts = list(_split(model.graph, set(shown), sizes))
        self._at = {value: index for index, part in enumerate(self._parts) for value in part.outputs}
        self._kept = {*shown, *model.graph.inputs}
        numbers = {node: index for index, part in enumerate(self._parts) for node in part.nodes}
        self._last = last_uses(model.graph, numbers.__getitem__)

    def of(self, value: ir.Value) -> torch.Tensor | None:
        """A value that is shown; None if it was released."""
        if value in self._at:
            self._run_until(self._at[value])
        return tensor_of(value) if is_weight(value) else self.values.get(value)

    def finish(self) -> None:
        """Runs all parts."""
        self._run_until(len(self._parts) - 1)

    def release(self, value: ir.Value) -> None:
        """Nobody asks for a value again."""
        self._kept.discard(value)
        if self._last.get(value, -1) < self.runs:
            self.values.pop(value, None)

    def _run_until(self, index: int) -> None:
        while self.runs <= index:
            part = self._parts[self.runs]
            self.values |= part.run(self._model, self.values, self._write, optimized=self._optimized)
            self.runs += 1
            if self._on_part is not None:
                self._on_part(part, self.values)
            for value in [*self.values] if self._memory > 1 else part.inputs:
                if value not in self._kept and self._last.get(value, -1) < self.runs - self._memory + 1:
                    self.values.pop(value, None)


def _split(graph: ir.Graph, shown: Collection[ir.Value], sizes: Mapping[str, int]) -> Iterator[Part]:
    """The parts of a graph, in order. No part begins while a sequence of tensors is alive, which no input can be."""
    nodes = list(graph)
    last = last_uses(nodes, {node: index for index, node in enumerate(nodes)}.__getitem__)
    outputs = set(graph.outputs)
    begin, size, open_until = 0, 0, -1
    for index, node in enumerate(nodes):
        size += sum(_bytes(value, sizes) for value in node.outputs if value in shown)
        open_until = max([open_until, *(last.get(value, -1) for value in node.outputs if isinstance(value.type, ir.SequenceType))])
        is_full = index + 1 - begin >= _NODES or size >= _BYTES
        if (is_full and open_until <= index) or index + 1 == len(nodes):
            made = [value for each in nodes[begin : index + 1] for value in each.outputs]
            wanted = [value for value in made if value in shown or value in outputs or last.get(value, -1) > index]
            if wanted:
                yield Part.of(graph, nodes[begin : index + 1], wanted)
                begin, size = index + 1, 0


def _bytes(value: ir.Value, sizes: Mapping[str, int]) -> int:
    """The bytes of a value; 0 if they are not known."""
    if value.shape is None or value.dtype is None:
        return 0
    known = [size_of(dim, sizes) for dim in value.shape]
    sizes_known = [size for size in known if size is not None]
    return math.ceil(math.prod(sizes_known) * value.dtype.bitwidth / 8) if len(sizes_known) == len(known) else 0
