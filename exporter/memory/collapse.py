"""Finds tensors that broadcasting makes large and that reductions soon collapse: `(x[:, None] - y[None]).abs().sum(-1)`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from .broadcasting import ARGUMENTS, ELEMENTWISE, REDUCTIONS, Shape, axes_of, in_numbers, repeats, shape_of

FACTOR = 8
"""How many times larger a tensor must be than what it is made of, and than what a reduction leaves of it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Collapse:
    """Operators that make large tensors of small ones, all of one shape, and the reductions of them.

    The large tensors are broadcast or repeated, or made elementwise. What they read may depend on the reductions, as for a variance.

    Attributes:
        nodes: The operators that make them, in the order of the graph.
        reductions: The reductions, in that order.
        leaves: The small tensors.
        shape: The shape of the large ones.
        sizes: The same as numbers.
        axes: The dims that one of the reductions removes.
        shapes: The known shapes.
        measured: The operators that read the shape of a large tensor, which needs no tensor.
    """

    nodes: tuple[ir.Node, ...]
    reductions: tuple[ir.Node, ...]
    leaves: tuple[ir.Value, ...]
    shape: Shape
    sizes: tuple[int, ...]
    axes: tuple[int, ...]
    shapes: Mapping[ir.Value, Shape]
    measured: tuple[ir.Node, ...] = ()

    @property
    def first(self) -> ir.Node:
        """The operator that makes the large tensor."""
        return self.nodes[0]

    @property
    def size(self) -> int:
        """The bytes of the largest tensor."""
        made = [node.outputs[0].dtype for node in self.nodes if node.outputs[0].dtype is not None]
        widths = (dtype.bitwidth for dtype in made or (leaf.dtype for leaf in self.leaves) if dtype is not None)
        return math.prod(self.sizes) * max(widths, default=8) // 8

    def shape_of(self, value: ir.Value) -> Shape | None:
        """The shape of a tensor; None if it is not known."""
        return self.shapes.get(value) or (None if value.shape is None else value.shape.dims)


@dataclasses.dataclass(frozen=True, eq=False)
class _Region:
    """As in a `Collapse`; `is_closed` tells whether nothing but its operators and reductions reads a large tensor."""

    nodes: dict[ir.Node, None]
    reductions: dict[ir.Node, tuple[int, ...]]
    leaves: dict[ir.Value, None]
    measured: dict[ir.Node, None]
    is_closed: bool


def collapses(graph: ir.Graph, sizes: Mapping[str, int]) -> Iterator[Collapse]:
    """The places in a graph where broadcasting makes a tensor that reductions collapse.

    Args:
        graph: The graph.
        sizes: The size of each dynamic dim.
    """
    shapes: dict[ir.Value, Shape | None] = {}
    order: dict[ir.Node, int] = {}
    seen: set[ir.Node] = set()
    for index, node in enumerate(graph):
        order[node] = index
    for node in order:
        if node.op_type not in REDUCTIONS | ARGUMENTS or node.domain or node.inputs[0] is None:
            continue
        producer, shape = node.inputs[0].producer(), None
        if producer is not None and producer not in seen and _is_inner(producer):
            shape = shape_of(node.inputs[0], shapes)
        if producer is None or shape is None:
            continue
        region = _region(producer, shape, shapes)
        seen.update(region.nodes)
        # NOTE: most reductions are those of normalizations, whose input is as large as their result's. Numbers cost more than names.
        given = [shape_of(leaf, shapes) for leaf in region.leaves]
        if not region.is_closed or None in given or shape in given or (numbers := in_numbers(shape, sizes)) is None:
            continue
        small = [in_numbers(each or (), sizes) for each in given]
        kept = (math.prod(size for axis, size in enumerate(numbers) if axis not in axes) for axes in region.reductions.values())
        if None not in small and FACTOR * max(*kept, *(math.prod(each or ()) for each in small)) <= math.prod(numbers):
            nodes, reductions = (tuple(sorted(each, key=order.__getitem__)) for each in (region.nodes, region.reductions))
            axes = tuple(sorted({axis for each in region.reductions.values() for axis in each}))
            known = {value: each for value, each in shapes.items() if each is not None}
            yield Collapse(nodes, reductions, tuple(region.leaves), shape, numbers, axes, known, tuple(region.measured))


def _region(start: ir.Node, shape: Shape, shapes: dict[ir.Value, Shape | None]) -> _Region:
    """The operators that make tensors of a shape, as far as one reads the other, from one of them on."""
    region = _Region({}, {}, {}, {}, is_closed=True)
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node in region.nodes:
            continue
        region.nodes[node] = None
        # NOTE: how often something is repeated is no part of it.
        for value in node.inputs[:1] if repeats(node) else node.inputs:
            producer = None if value is None else value.producer()
            if value is None:
                continue
            if producer is not None and producer.graph is start.graph and _is_inner(producer) and shape_of(value, shapes) == shape:
                waiting.append(producer)
            else:
                region.leaves[value] = None
        (made,) = node.outputs
        for user, index in made.uses():
            axes = _removed(user, index, start, len(shape))
            if axes:
                region.reductions[user] = axes
            elif user.op_type == "Shape" and not user.domain and user.graph is start.graph:
                region.measured[user] = None
            elif user.graph is start.graph and _is_inner(user) and shape_of(user.outputs[0], shapes) == shape:
                waiting.append(user)
            else:
                return dataclasses.replace(region, is_closed=False)
        if made.is_graph_output():
            return dataclasses.replace(region, is_closed=False)
    return region


def _is_inner(node: ir.Node) -> bool:
    return not node.domain and (node.op_type in ELEMENTWISE or repeats(node))


def _removed(user: ir.Node, index: int, start: ir.Node, rank: int) -> tuple[int, ...]:
    """The dims of a large tensor that `user` removes, if it is a reduction and reads it as its input number `index`."""
    is_reduction = user.op_type in REDUCTIONS | ARGUMENTS and not user.domain and user.graph is start.graph and index == 0
    return axes_of(user, rank) if is_reduction else ()


def place_of(shape: Shape, axis: int, large: Shape) -> int | None:
    """The dim of a tensor of this shape that is the dim `axis` of the large tensor, and is not broadcast to it."""
    place = axis - len(large) + len(shape)
    return None if place < 0 or shape[place] != large[axis] else place
