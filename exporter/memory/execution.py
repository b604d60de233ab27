"""The kernels that ONNX Runtime runs for a graph, in its order: some compute several nodes, and none what depends on constants alone."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import onnx_ir as ir

from .shapes import Shapes


@dataclasses.dataclass(eq=False)
class Kernel:
    """What ONNX Runtime runs at a time.

    Attributes:
        node: The node that it computes, or of several the one that it is named after.
        operator: Its operator.
        inputs: The tensors that it reads, once for each use; those that its graphs read are among them.
        outputs: The tensors that it makes.
        number: Its place among the kernels where several may run next.
    """

    node: ir.Node
    operator: str
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    number: int


class _Place(NamedTuple):
    kernel: Kernel
    is_done: bool


class Kernels:
    """The kernels of a graph, and what they read of each other.

    Args:
        graph: The graph, which does not change.
        shapes: The shapes of its tensors.
        constants: Tensors of outer graphs that are known before a run.

    Attributes:
        constants: All tensors that are known before a run: weights, and what nodes compute of them.
    """

    def __init__(self, graph: ir.Graph, shapes: Shapes, constants: Iterable[ir.Value] = ()) -> None:
        self.outputs = frozenset(graph.outputs)
        self.constants = {*constants, *graph.initializers.values()}
        self.shapes = shapes
        self._numbers = itertools.count()
        self._list: dict[Kernel, None] = {}
        self._makers: dict[ir.Value, Kernel] = {}
        self._readers: dict[ir.Value, dict[Kernel, None]] = {}
        for node in graph:
            if self._is_constant(node):
                self.constants.update(node.outputs)
            else:
                self.new(node, node.op_type, list(_read(node)), list(node.outputs))

    def __iter__(self) -> Iterator[Kernel]:
        return iter(tuple(self._list))

    def __contains__(self, kernel: Kernel) -> bool:
        return kernel in self._list

    def _is_constant(self, node: ir.Node) -> bool:
        # NOTE: ONNX Runtime computes such nodes when it loads the model, except those with graphs and those that are random.
        if node.op_type == "Shape" and (shape := node.inputs[0].shape if node.inputs[0] is not None else None) is not None:
            return all(isinstance(dim, int) for dim in shape)
        is_known = all(value is None or value in self.constants for value in node.inputs)
        return is_known and "Random" not in node.op_type and not any(graphs_of(node))

    def new(self, node: ir.Node, operator: str, inputs: list[ir.Value], outputs: list[ir.Value]) -> Kernel:
        """Adds a kernel."""
        kernel = Kernel(node, operator, inputs, outputs, next(self._numbers))
        self.add(kernel)
        return kernel

    def add(self, kernel: Kernel) -> None:
        """Adds a kernel that exists already."""
        self._list[kernel] = None
        for value in kernel.inputs:
            self._readers.setdefault(value, {})[kernel] = None
        for value in kernel.outputs:
            self._makers[value] = kernel

    def maker(self, value: ir.Value) -> Kernel | None:
        """The kernel that makes a tensor; None for inputs and constants."""
        return self._makers.get(value)

    def readers(self, value: ir.Value) -> tuple[Kernel, ...]:
        """The kernels that read a tensor."""
        return tuple(self._readers.get(value, ()))

    def only_reader(self, value: ir.Value) -> Kernel | None:
        """The kernel that reads a tensor once, if nothing else needs the tensor."""
        readers = self.readers(value)
        is_only = len(readers) == 1 and value not in self.outputs and readers[0].inputs.count(value) == 1
        return readers[0] if is_only else None

    def variable(self, kernel: Kernel) -> list[ir.Value]:
        """What a kernel reads but constants."""
        return [value for value in kernel.inputs if value not in self.constants]

    def merge(self, kernels: Sequence[Kernel], operator: str, node: ir.Node | None = None) -> Kernel:
        """Makes one kernel of several, in the place of the last. What only they read exists no more.

        Args:
            kernels: The kernels, in their order.
            operator: What they become.
            node: The node of the kernel; that of the last by default.
        """
        made = {value for kernel in kernels for value in kernel.outputs}
        inputs = [value for kernel in kernels for value in kernel.inputs if value not in made]
        for kernel in kernels:
            self.remove(kernel)
        return self.new(node or kernels[-1].node, operator, inputs, list(kernels[-1].outputs))

    def remove(self, kernel: Kernel) -> None:
        """Removes a kernel."""
        del self._list[kernel]
        for value in kernel.inputs:
            self._readers[value].pop(kernel, None)
        for value in kernel.outputs:
            del self._makers[value]

    def in_order(self) -> list[Kernel]:
        """The kernels in the order in which ONNX Runtime runs them."""
        # NOTE: read in ONNX Runtime 1.31, Graph::ReverseDFSFrom: from the last kernels back, what comes last in the file first.
        found: list[Kernel] = []
        seen: set[Kernel] = set()
        waiting = [_Place(kernel, False) for kernel in self._list if not any(map(self.readers, kernel.outputs))]
        while waiting:
            kernel, is_done = waiting.pop()
            if is_done:
                found.append(kernel)
            elif kernel not in seen:
                seen.add(kernel)
                waiting.append(_Place(kernel, True))
                makers = {maker: None for value in kernel.inputs if (maker := self.maker(value)) is not None}
                waiting += (_Place(maker, False) for maker in sorted(makers, key=lambda each: each.number) if maker not in seen)
        return found


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among the attributes of a node, such as the body of a loop."""
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            yield attribute.as_graph()


def _read(node: ir.Node) -> Iterator[ir.Value]:
    """The values that a node reads, once for each use, with those that its graphs read."""
    yield from (value for value in node.inputs if value is not None)
    for graph in graphs_of(node):
        inner = {value for each in graph.all_nodes() for value in each.outputs}
        yield from (value for each in graph.all_nodes() for value in each.inputs if value is not None and value not in inner)
