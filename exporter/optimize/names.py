"""Names for new values of a model."""

from __future__ import annotations

import itertools

import onnx_ir as ir


def names_in(graph: ir.Graph) -> set[str]:
    """The names of all values of a graph and of the graphs in it."""
    inputs = itertools.chain(graph.inputs, *(each.inputs for each in graph.subgraphs()))
    values = itertools.chain(inputs, graph.initializers.values(), *(node.outputs for node in graph.all_nodes()))
    return {value.name for value in values if value.name}


def free(wanted: str, taken: set[str]) -> str:
    """`wanted`, with underscores behind it if it is taken. The name is taken then."""
    name = wanted
    while name in taken:
        name += "_"
    taken.add(name)
    return name
