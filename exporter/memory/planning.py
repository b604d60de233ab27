"""The plan of memory that ONNX Runtime makes for a graph before it runs: which tensors share a buffer, and how long each buffer lives."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from .kernels import IN_PLACE, VIEWS, WORKSPACE
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
    """The memory of a run of a graph, node by node in the order of the graph.

    Args:
        graph: The graph.
        shapes: The shapes of its tensors.

    Attributes:
        live: The bytes in memory while each node runs.
    """

    # NOTE: read in ONNX Runtime 1.31, core/framework/allocation_planner.cc: a tensor takes the buffer of its input if the kernel allows it,
    # else that of a tensor of equal shape that nobody needs any more. So a buffer may stay although nothing is in it for a while.
    def __init__(self, graph: ir.Graph, shapes: Shapes) -> None:
        self._shapes = shapes
        self._outputs = Counter(graph.outputs)
        self._nodes = list(graph)
        self._buffers: list[_Buffer] = []
        self._held: dict[ir.Value, _Buffer] = {}
        self._free: dict[object, list[_Buffer]] = {}
        self._inner: dict[int, Plan] = {}
        for index, node in enumerate(self._nodes):
            self._plan(index, node)
        for value in self._outputs:
            if value in self._held:
                self._held[value].last = len(self._nodes)
        self.live = self._timeline()

    @property
    def peak(self) -> int:
        """The most bytes at a time."""
        return max(self.live, default=0)

    @property
    def at(self) -> int:
        """The index of the first node with the most bytes."""
        return self.live.index(self.peak) if self.live else 0

    def present(self) -> Iterator[ir.Value]:
        """The tensors in memory at the peak."""
        for buffer in self._buffers:
            made = [value for step, value in buffer.tensors if step <= self.at]
            if made and self.at <= buffer.last:
                yield made[-1]
        if self.at in self._inner:
            yield from self._inner[self.at].present()

    def _plan(self, index: int, node: ir.Node) -> None:
        for value in node.outputs:
            buffer = None if value in self._outputs else self._reused(node, value)
            if buffer is None:
                buffer = _Buffer(self._shapes.bytes_of(value) or 0, [], index)
                self._buffers.append(buffer)
            buffer.tensors.append((index, value))
            buffer.readers += len(value.uses()) + self._outputs[value]
            buffer.last = index
            self._held[value] = buffer
        for value in (*_read(node), *(each for each in node.outputs if not each.uses() and each not in self._outputs)):
            if (held := self._held.get(value)) is not None:
                held.readers -= bool(value.uses())
                held.last = index
                key = self._shapes.key(held.tensors[0][1])
                if held.readers == 0 and key is not None:
                    self._free.setdefault(key, []).append(held)
        plans = [Plan(graph, self._shapes) for graph in graphs_of(node)]
        if plans:
            self._inner[index] = max(plans, key=lambda plan: plan.peak)

    def _reused(self, node: ir.Node, value: ir.Value) -> _Buffer | None:
        """The buffer that a result of `node` takes over."""
        given = node.inputs[0] if node.inputs else None
        held = None if given is None else self._held.get(given)
        if node.op_type in VIEWS:
            return held
        key = self._shapes.key(value)
        if key is None:
            return None
        if given is not None and held is not None and node.op_type in IN_PLACE and held.readers == 1 and self._shapes.key(given) == key:
            return held
        free = self._free.get(key)
        return free.pop() if free else None

    def _timeline(self) -> list[int]:
        changes = [0] * (len(self._nodes) + 2)
        for buffer in self._buffers:
            changes[buffer.tensors[0][0]] += buffer.size
            changes[buffer.last + 1] -= buffer.size
        live, total = [], 0
        for index, (node, change) in enumerate(zip(self._nodes, changes, strict=False)):
            total += change
            times = WORKSPACE.get(node.op_type, 0)
            workspace = times * (self._shapes.bytes_of(node.outputs[0]) or 0) if times else 0
            live.append(total + workspace + (self._inner[index].peak if index in self._inner else 0))
        return live


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among the attributes of a node, such as the body of a loop."""
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            yield attribute.as_graph()


def _read(node: ir.Node) -> Iterable[ir.Value]:
    """The values that a node reads, once for each use, with those that its graphs read."""
    yield from (value for value in node.inputs if value is not None)
    for graph in graphs_of(node):
        for inner in graph.all_nodes():
            yield from (value for value in inner.inputs if value is not None)
