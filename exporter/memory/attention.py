"""Finds attention: `softmax(q @ k.T + mask) @ v`, whose scores grow with the product of the two lengths."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from .broadcasting import ELEMENTWISE, Shape, in_numbers, shape_of
from .collapse import Collapse


@dataclasses.dataclass(frozen=True, eq=False)
class Attention(Collapse):
    """The operators from the scores to what they weigh. Each row of the result depends on one row of the scores alone.

    The reduction is the product with the values. The leaves are the tensors with a row for each row of the scores, such as the queries.
    Others, such as keys and values, are read as a whole.
    """

    @property
    def first(self) -> ir.Node:
        """The product that makes the scores."""
        return next(node for node in self.nodes if node.op_type == "MatMul")

    @property
    def is_dynamic(self) -> bool:
        """Whether one of the two lengths is."""
        return not all(isinstance(size, int) for size in self.shape[-2:])


def attentions(graph: ir.Graph, sizes: Mapping[str, int]) -> Iterator[Attention]:
    """The attention in a graph that can be computed for some rows at a time.

    Args:
        graph: The graph.
        sizes: The size of each dynamic dim.
    """
    shapes: dict[ir.Value, Shape | None] = {}
    order = {node: index for index, node in enumerate(graph)}
    for node in graph:
        if node.op_type != "MatMul" or node.domain or node.inputs[0] is None:
            continue
        shape = shape_of(node.inputs[0], shapes)
        numbers = None if shape is None else in_numbers(shape, sizes)
        if shape is None or numbers is None or len(shape) < 2 or shape[-2] == 1:
            continue
        rows = _Rows(node, shape, shapes)
        if rows.grow():
            nodes = tuple(sorted(rows.inside, key=order.__getitem__))
            known = {value: each for value, each in shapes.items() if each is not None}
            yield Attention(nodes, (node,), tuple(rows.leaves), shape, numbers, (), known)


class _Rows:
    """The operators behind the weights of an attention, as far as only it needs their results and each row is computed alone.

    Args:
        product: The product of the weights and the values.
        shape: The shape of the weights.
        shapes: The known shapes.
    """

    def __init__(self, product: ir.Node, shape: Shape, shapes: dict[ir.Value, Shape | None]) -> None:
        self.inside: dict[ir.Node, None] = {}
        self.leaves: dict[ir.Value, None] = {}
        self._product = product
        self._shape = shape
        self._shapes = shapes

    def grow(self) -> bool:
        """Finds the operators. Returns whether they are an attention."""
        weights, values = self._product.inputs
        assert weights is not None
        waiting: list[ir.Value] = [weights]
        read: dict[ir.Value, None] = {}
        whole = {values}
        while waiting:
            value = waiting.pop()
            node = value.producer()
            if node in self.inside:
                continue
            if node is None or not self._is_inner(value, node):
                read[value] = None
                continue
            self.inside[node] = None
            read.pop(value, None)
            given = [each for each in node.inputs if each is not None]
            if node.op_type == "MatMul":
                whole.add(given.pop())
            waiting += given
        made = {value for node in self.inside for value in node.outputs}
        kinds = {node.op_type for node in self.inside}
        # NOTE: what is read as a whole must not depend on rows.
        return {"MatMul", "Softmax"} <= kinds and not whole & made and all(map(self._leaf, read)) and self._keeps_batch()

    def _keeps_batch(self) -> bool:
        """Whether the result has the dims of the weights before the last, and a leaf has those that are dynamic."""
        result = shape_of(self._product.outputs[0], self._shapes)
        places = range(-len(self._shape), -2)
        leaves = [shape_of(leaf, self._shapes) or () for leaf in self.leaves]
        known = all(
            isinstance(self._shape[place], int) or any(len(leaf) >= -place and leaf[place] == self._shape[place] for leaf in leaves)
            for place in places
        )
        return known and result is not None and tuple(result[:-1]) == tuple(self._shape[:-1])

    def _is_inner(self, value: ir.Value, node: ir.Node) -> bool:
        shape = shape_of(value, self._shapes)
        is_known = not node.domain and (
            node.op_type in ELEMENTWISE | {"MatMul"} or (node.op_type == "Softmax" and _is_along_rows(node, shape))
        )
        return (
            is_known
            and node.graph is self._product.graph
            and shape is not None
            and tuple(shape[-2:]) == tuple(self._shape[-2:])
            and not value.is_graph_output()
            and all(user is self._product or user in self.inside for user, _ in value.uses())
        )

    def _leaf(self, value: ir.Value) -> bool:
        """Whether a tensor has a row for each row of the scores, and then remembers it, or one for all."""
        shape = shape_of(value, self._shapes)
        if shape is not None and len(shape) > 1 and shape[-2] == self._shape[-2]:
            self.leaves[value] = None
            return True
        return shape is not None and (len(shape) < 2 or shape[-2] == 1)


def _is_along_rows(softmax: ir.Node, shape: Sequence[object] | None) -> bool:
    # NOTE: before opset 13, a Softmax was along all dims from its axis on, with another default.
    axis = softmax.attributes.get_int("axis", -1)
    return axis == -1 or (shape is not None and axis == len(shape) - 1)
