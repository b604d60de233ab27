"""The values that nodes read, also in the graphs of their control flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx_ir as ir

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs that are attributes of a node."""
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type is ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def inner_nodes(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes in the graphs of a node, at any depth."""
    for graph in graphs_of(node):
        for each in graph:
            yield each
            yield from inner_nodes(each)


def has_graphs(node: ir.Node) -> bool:
    """Whether graphs are attributes of a node, as those of control flow are."""
    return any(each.type in _GRAPHS for each in node.attributes.values())


def reads(node: ir.Node) -> Iterable[ir.Value]:
    """The values from outside of a node that it reads, each once."""
    read: Iterable[ir.Value | None] = node.inputs
    if not has_graphs(node):
        return dict.fromkeys([value for value in read if value is not None])
    inside = list(inner_nodes(node))
    own = {value for each in inside for value in each.outputs}
    for each in (node, *inside):
        own.update(value for graph in graphs_of(each) for value in (*graph.inputs, *graph.initializers.values()))
    read = (value for each in (node, *inside) for value in each.inputs)
    return dict.fromkeys([value for value in read if value is not None and value not in own])


def replace_reads(node: ir.Node, others: Mapping[ir.Value, ir.Value | None]) -> None:
    """Makes a node, and the nodes in its graphs, read other values."""
    for each in (node, *inner_nodes(node)) if has_graphs(node) else (node,):
        for index, value in enumerate(each.inputs):
            if value is not None and value in others:
                each.replace_input_with(index, others[value])
