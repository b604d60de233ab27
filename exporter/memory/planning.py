"""The plan of memory that ONNX Runtime makes for a graph before it runs: which tensors share a buffer, and how long each buffer lives."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from .execution import Kernel, Kernels, graphs_of
from .kernels import VIEWS, in_place, workspace
from .layouts import block
from .merging import merge
from .shapes import Shapes


@dataclasses.dataclass(eq=False)
class _Buffer:
    """Memory for one tensor or for several, one after the other.

    Attributes:
        size: Its bytes.
        tensors: The steps that make a tensor in it, with the tensor.
        last: The last step that uses it.
        readers: How many uses are left of the tensor in it.
    """

    size: int
    tensors: list[tuple[int, ir.Value]]
    last: int
    readers: int = 0


class Plan:
    """The memory of a run of a graph, kernel by kernel in ONNX Runtime's order.

    Args:
        graph: The graph.
        shapes: The shapes of its tensors.
        constants: Tensors of outer graphs that are known before the run.

    Attributes:
        kernels: The kernels.
        live: The bytes in memory while each of them runs.
    """

    # NOTE: read in ONNX Runtime 1.31, core/framework/allocation_planner.cc: a tensor takes the buffer of its input if the kernel allows it,
    # else that of a tensor of equal shape that nobody needs any more. So a buffer may stay although nothing is in it for a while.
    def __init__(self, graph: ir.Graph, shapes: Shapes, constants: Iterable[ir.Value] = ()) -> None:
        self._shapes = shapes
        self._outputs = Counter(graph.outputs)
        found = Kernels(graph, shapes, constants)
        merge(found)
        block(found)
        self._constants = found.constants
        self.kernels = found.in_order()
        self._readers = Counter(value for kernel in self.kernels for value in kernel.inputs) + self._outputs
        self._buffers: list[_Buffer] = []
        self._held: dict[ir.Value, _Buffer] = {}
        self._free: dict[object, list[_Buffer]] = {}
        self._inner: dict[int, Plan] = {}
        for index, kernel in enumerate(self.kernels):
            self._plan(index, kernel)
        for value in self._outputs:
            if value in self._held:
                self._held[value].last = len(self.kernels)
        self.live = self._timeline()

    @property
    def peak(self) -> int:
        """The most bytes at a time."""
        return max(self.live, default=0)

    @property
    def at(self) -> int:
        """The index of the first kernel with the most bytes."""
        return self.live.index(self.peak) if self.live else 0

    def present(self) -> Iterator[tuple[ir.Value, ir.Node]]:
        """The tensors in memory at the peak, and the nodes that make them."""
        for buffer in self._buffers:
            made = [(value, self.kernels[step].node) for step, value in buffer.tensors if step <= self.at]
            if made and self.at <= buffer.last:
                yield made[-1]
        if self.at in self._inner:
            yield from self._inner[self.at].present()

    def _plan(self, index: int, kernel: Kernel) -> None:
        for value in kernel.outputs:
            buffer = None if value in self._outputs else self._reused(kernel, value)
            if buffer is None:
                buffer = _Buffer(self._shapes.bytes_of(value) or 0, [], index)
                self._buffers.append(buffer)
            buffer.tensors.append((index, value))
            buffer.readers += self._readers[value]
            buffer.last = index
            self._held[value] = buffer
        for value in (*kernel.inputs, *(each for each in kernel.outputs if not self._readers[each])):
            if (held := self._held.get(value)) is not None:
                held.readers -= bool(self._readers[value])
                held.last = index
                key = self._shapes.key(held.tensors[0][1])
                if held.readers == 0 and key is not None:
                    self._free.setdefault(key, []).append(held)
        plans = [Plan(graph, self._shapes, self._constants) for graph in graphs_of(kernel.node)]
        if plans:
            self._inner[index] = max(plans, key=lambda plan: plan.peak)

    def _reused(self, kernel: Kernel, value: ir.Value) -> _Buffer | None:
        """The buffer that a result of `kernel` takes over."""
        if kernel.operator in VIEWS:
            return self._held.get(kernel.inputs[0])
        key = self._shapes.key(value)
        if key is None:
            return None
        for given in in_place(kernel):
            held = self._held.get(given)
            if held is not None and held.readers == 1 and self._shapes.key(given) == key:
                return held
        free = self._free.get(key)
        return free.pop() if free else None

    def _timeline(self) -> list[int]:
        changes = [0] * (len(self.kernels) + 2)
        for buffer in self._buffers:
            changes[buffer.tensors[0][0]] += buffer.size
            changes[buffer.last + 1] -= buffer.size
        live, total = [], 0
        for index, (kernel, change) in enumerate(zip(self.kernels, changes, strict=False)):
            total += change
            live.append(total + workspace(kernel, self._shapes, self._inner[index].peak if index in self._inner else 0))
        return live
