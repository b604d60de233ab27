"""Finds how a tensor that reductions collapse can be computed in chunks: the dim to cut, and what each chunk computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from .attention import Attention
from .broadcasting import ARGUMENTS, ELEMENTWISE, broadcasts, keeps_dims, repeats
from .collapse import Collapse, place_of


@dataclasses.dataclass(frozen=True, eq=False)
class Cut:
    """A way to compute the tensors of a `Collapse` in chunks.

    Attributes:
        axis: The dim to cut.
        is_kept: Whether the reductions keep that dim, so that each chunk gives a part of their results.
        nodes: All operators that each chunk computes, in the order of the graph.
        leaves: What they read.
        results: What other operators read of them, or is an output of the graph.
    """

    axis: int
    is_kept: bool
    nodes: tuple[ir.Node, ...]
    leaves: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]


def cut_of(graph: ir.Graph, found: Collapse) -> Cut | None:
    """A way to compute the tensors of `found` in chunks; None if there is none."""
    large = {*found.nodes, *found.reductions}
    between = set() if isinstance(found, Attention) else _between(graph, found)
    if not all(each.op_type in ELEMENTWISE and not each.domain for each in between):
        return None
    nodes = tuple(node for node in graph if node in large or node in between)
    made = {value: None for node in nodes for value in node.outputs}
    leaves = found.leaves if isinstance(found, Attention) else tuple(dict.fromkeys(_read(nodes, made)))
    known = dict(found.shapes) | {value: None for value in leaves if found.shape_of(value) is None}
    if None in known.values() or not all(broadcasts(node, known) for node in found.nodes if repeats(node)):
        return None
    inner = {*nodes, *found.measured}
    results = tuple(value for value in made if value.is_graph_output() or any(user not in inner for user, _ in value.uses()))
    axis = next((axis for axis in _axes(found) if _can_cut(found, axis, between, leaves)), None)
    return None if axis is None else Cut(axis, axis not in found.axes, nodes, leaves, results)


def _axes(found: Collapse) -> Iterator[int]:
    """The dims that may be cut: those that all results keep, the largest first, or else the first of several that are reduced."""
    if isinstance(found, Attention):
        yield len(found.shape) - 2
        return
    kept = [axis for axis in range(len(found.shape)) if axis not in found.axes and found.sizes[axis] > 1]
    yield from sorted(kept, key=lambda axis: -found.sizes[axis])
    if not kept and len(found.axes) > 1 and len(found.reductions) == 1 and found.reductions[0].op_type not in ARGUMENTS:
        yield found.axes[0]


def _can_cut(found: Collapse, axis: int, between: Iterable[ir.Node], leaves: Iterable[ir.Value]) -> bool:
    """Whether each chunk can be computed alone: what lies between has that dim, and a leaf tells the size of each dynamic dim."""
    inner = [value for node in between for value in node.outputs]
    if inner and axis in found.axes:
        return False
    shapes = [found.shape_of(leaf) or () for leaf in leaves]
    dynamic = () if isinstance(found, Attention) else (each for each, size in enumerate(found.shape) if not isinstance(size, int))
    asked = [axis, *dynamic]
    return all(place_of(found.shape_of(value) or (), axis, found.shape) is not None for value in inner) and all(
        any(place_of(shape, each, found.shape) is not None for shape in shapes) for each in asked
    )


def _between(graph: ir.Graph, found: Collapse) -> set[ir.Node]:
    """The operators that compute of the reductions what the large tensors are made of, such as a mean that is subtracted.

    A reduction without the dims that it removes is among them if they read it, so that they cannot be computed in chunks.
    """
    large = {*found.nodes, *found.reductions}
    after: set[ir.Node] = set()
    for node in graph:
        if node in found.reductions or any(value is not None and value.producer() in after for value in node.inputs):
            after.add(node)
    between: set[ir.Node] = set()
    waiting = [value for node in found.nodes for value in node.inputs]
    while waiting:
        value = waiting.pop()
        producer = None if value is None else value.producer()
        if producer is None or producer not in after or producer in between:
            continue
        if producer not in large:
            between.add(producer)
            waiting += producer.inputs
        elif producer in found.reductions and not keeps_dims(producer):
            between.add(producer)
    return between


def _read(nodes: Iterable[ir.Node], made: Iterable[ir.Value]) -> Iterator[ir.Value]:
    """What nodes read of others; of what is repeated, not how often."""
    inner = {*made}
    for node in nodes:
        given = node.inputs[:1] if repeats(node) or node.op_type.startswith(("Reduce", "Arg")) else node.inputs
        yield from (value for value in given if value is not None and value not in inner)
