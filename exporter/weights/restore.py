"""A model whose weights have the names and layouts of the state dict: operators compute what would be computed when it is written."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from .initializers import of
from .tensors import Computed


def restored(model: ir.Model, which: Callable[[Computed], bool]) -> ir.Model:
    """A copy in which operators compute what would be computed when it is written.

    Its weights have the names, the layouts and the order of the state dict.

    Args:
        model: The model; it stays as it is. The copy shares its tensors.
        which: Which computed weights operators are put back for.
    """
    copy = model.clone()
    graph = copy.graph
    nodes: list[ir.Node] = []
    made: dict[int, ir.Value] = {}
    taken = {value.name for node in graph.all_nodes() for value in node.outputs} | {each.name for each in graph.inputs}

    def unused(wanted: str) -> str:
        while wanted in taken or wanted in graph.initializers:
            wanted += "_"
        taken.add(wanted)
        return wanted

    def initializer(value: ir.Value) -> ir.Value:
        """`value`, which the original has or had as an initializer, in the copy."""
        known = graph.initializers.get(value.name or "")
        if known is None or known.const_value is not value.const_value:
            assert value.const_value is not None
            known = ir.Value(name=unused(value.name or ""), shape=value.shape, type=value.type, const_value=value.const_value)
            graph.register_initializer(known)
        return known

    def compute(value: ir.Value) -> ir.Value:
        tensor = value.const_value
        if not isinstance(tensor, Computed) or not which(tensor):
            return initializer(value)
        if id(tensor) not in made:
            inner: dict[int, ir.Value] = {}
            for node in tensor.operators():
                for index, given in enumerate(node.inputs):
                    if given is not None:
                        node.replace_input_with(index, inner[id(given)] if id(given) in inner else compute(given))
                output = node.outputs[0]
                inner[id(output)] = output
                output.name = unused(f"{value.name}.{node.op_type.lower()}")
                node.name = f"{node.op_type}_{output.name}"
                nodes.append(node)
            made[id(tensor)] = nodes[-1].outputs[0]
            made[id(tensor)].shape, made[id(tensor)].type = value.shape, value.type
        return made[id(tensor)]

    for value in of(copy):
        if isinstance(value.const_value, Computed) and which(value.const_value):
            graph.initializers.pop(value.name)  # type: ignore[arg-type]
            ir.convenience.replace_all_uses_with(value, compute(value))
    if nodes:
        graph.insert_before(graph[0], nodes)
    values = sorted(graph.initializers.values(), key=lambda value: getattr(value.const_value, "place", -1))
    graph.initializers.clear()
    for value in values:
        graph.register_initializer(value)
    return copy
