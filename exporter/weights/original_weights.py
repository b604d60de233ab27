"""A model whose weights are those of the state dict: operators compute what would otherwise be computed when the model is written."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from .initializers import of
from .tensors import Computed


def with_original_weights(model: ir.Model, replaced: Callable[[Computed], bool]) -> ir.Model:
    """A copy in which operators take the place of computed weights.

    The weights that the operators read have the names and layouts of the state dict. Parameters come first, then buffers.

    Args:
        model: The model; it does not change. The copy shares its tensors.
        replaced: Whether operators take the place of a computed weight.
    """
    copy = model.clone()
    graph = copy.graph
    operators = _Operators(graph, replaced)
    for value in of(copy):
        if operators.are_for(value):
            graph.initializers.pop(value.name)  # type: ignore[arg-type]  # a registered initializer has a name
            ir.convenience.replace_all_uses_with(value, operators.compute(value))
    if operators.nodes:
        graph.insert_before(graph[0], operators.nodes)
    values = sorted(graph.initializers.values(), key=lambda value: getattr(value.const_value, "place", -1))
    graph.initializers.clear()
    for value in values:
        graph.register_initializer(value)
    return copy


class _Operators:
    """Makes the operators for computed weights, those for one weight once.

    Args:
        graph: The copy's graph. It gets the weights that the operators read.
        replaced: As for `with_original_weights`.

    Attributes:
        nodes: The operators, in order.
    """

    def __init__(self, graph: ir.Graph, replaced: Callable[[Computed], bool]) -> None:
        self.nodes: list[ir.Node] = []
        self._graph = graph
        self._replaced = replaced
        self._results: dict[int, ir.Value] = {}
        self._taken = {value.name for node in graph.all_nodes() for value in node.outputs} | {each.name for each in graph.inputs}

    def are_for(self, value: ir.Value) -> bool:
        """Whether operators compute `value`."""
        return isinstance(value.const_value, Computed) and self._replaced(value.const_value)

    def compute(self, value: ir.Value) -> ir.Value:
        """The value of the copy that stands for `value`, an initializer of the original model or one that it once had."""
        tensor = value.const_value
        if not isinstance(tensor, Computed) or not self._replaced(tensor):
            return self._initializer(value)
        if id(tensor) not in self._results:
            inner: dict[int, ir.Value] = {}
            for node in tensor.operators():
                for index, given in enumerate(node.inputs):
                    if given is not None:
                        node.replace_input_with(index, inner[id(given)] if id(given) in inner else self.compute(given))
                output = node.outputs[0]
                inner[id(output)] = output
                output.name = self._unused(f"{value.name}.{node.op_type.lower()}")
                node.name = f"{node.op_type}_{output.name}"
                self.nodes.append(node)
            result = self._results[id(tensor)] = self.nodes[-1].outputs[0]
            result.shape, result.type = value.shape, value.type
        return self._results[id(tensor)]

    def _initializer(self, value: ir.Value) -> ir.Value:
        known = self._graph.initializers.get(value.name or "")
        if known is None or known.const_value is not value.const_value:
            assert value.const_value is not None
            known = ir.Value(name=self._unused(value.name or ""), shape=value.shape, type=value.type, const_value=value.const_value)
            self._graph.register_initializer(known)
        return known

    def _unused(self, wanted: str) -> str:
        while wanted in self._taken or wanted in self._graph.initializers:
            wanted += "_"
        self._taken.add(wanted)
        return wanted
