"""Finds tensors that broadcasting makes large and that a reduction soon collapses: `(x[:, None] - y[None]).abs().sum(-1)`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from onnxplain.recording import small_constant

from .dims import size_of

Shape = tuple[int | ir.SymbolicDim, ...]

REDUCTIONS = frozenset(
    {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"}
)
ARGUMENTS = frozenset({"ArgMax", "ArgMin"})
ELEMENTWISE = frozenset(
    """
    Abs Add And Cast Ceil Clip Cos Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual Identity IsInf IsNaN LeakyRelu Less LessOrEqual
    Log Max Min Mod Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sin Softplus Sqrt Sub Sum Tanh Where Xor
    """.split()  # noqa: SIM905  a list of so many names would take a page
)

FACTOR = 8
"""How many times larger a tensor must be than what it is made of, and than what the reduction leaves of it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Collapse:
    """Elementwise operators that broadcast small tensors to a large one, and the reduction of it.

    Attributes:
        nodes: The elementwise operators, in the order of the graph.
        reduction: The reduction.
        leaves: The small tensors.
        shape: The shape of the large one.
        sizes: The same as numbers.
        axes: The dims that the reduction removes.
    """

    nodes: tuple[ir.Node, ...]
    reduction: ir.Node
    leaves: tuple[ir.Value, ...]
    shape: Shape
    sizes: tuple[int, ...]
    axes: tuple[int, ...]

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

    def shape_of(self, value: ir.Value) -> Shape:
        """The shape of what one of `nodes` reads or makes."""
        return self.shape if value.shape is None or value not in self.leaves else value.shape.dims


def collapses(graph: ir.Graph, sizes: Mapping[str, int]) -> Iterator[Collapse]:
    """The places in a graph where broadcasting makes a tensor that a reduction collapses.

    Args:
        graph: The graph.
        sizes: The size of each dynamic dim.
    """
    shapes: dict[ir.Value, Shape | None] = {}
    order: dict[ir.Node, int] = {}
    for index, node in enumerate(graph):
        order[node] = index
        if node.op_type not in REDUCTIONS | ARGUMENTS or node.domain or node.inputs[0] is None:
            continue
        producer = node.inputs[0].producer()
        shape = None if producer is None or producer.op_type not in ELEMENTWISE else shape_of(node.inputs[0], shapes)
        axes = () if shape is None else _axes(node, len(shape))
        if shape is None or not axes:
            continue
        nodes, leaves = _region(node, shape, shapes)
        # NOTE: most reductions are those of normalizations, whose input is as large as their result's. Numbers cost more than names.
        given = [None if leaf.shape is None else shape_of(leaf, shapes) for leaf in leaves]
        if not nodes or None in given or shape in given or (numbers := in_numbers(shape, sizes)) is None:
            continue
        small = [in_numbers(each or (), sizes) for each in given]
        kept = math.prod(size for axis, size in enumerate(numbers) if axis not in axes)
        if None not in small and FACTOR * max(kept, *(math.prod(each or ()) for each in small)) <= math.prod(numbers):
            yield Collapse(tuple(sorted(nodes, key=order.__getitem__)), node, leaves, shape, numbers, axes)


def _axes(node: ir.Node, rank: int) -> tuple[int, ...]:
    """The dims that a reduction removes; none if only a run tells them."""
    if node.op_type in ARGUMENTS:
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        return (axis % rank,)
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is None:
        return () if {"axes", "noop_with_empty_axes"} & set(node.attributes) else tuple(range(rank))
    found = small_constant(given)
    return () if found is None else tuple(sorted(int(axis) % rank for axis in found.reshape(-1)))


def _region(reduction: ir.Node, shape: Shape, shapes: dict[ir.Value, Shape | None]) -> tuple[tuple[ir.Node, ...], tuple[ir.Value, ...]]:
    """The elementwise operators whose results only lead to the reduction, and what they read."""
    inside = {reduction: None}
    waiting = [reduction.inputs[0]]
    leaves: dict[ir.Value, None] = {}
    while waiting:
        value = waiting.pop()
        if value is None:
            continue
        node = value.producer()
        if node in inside:
            continue
        is_inner = node is not None and node.op_type in ELEMENTWISE and not node.domain and node.graph is reduction.graph
        if (
            is_inner
            and shape_of(value, shapes) == shape
            and all(user in inside for user, _ in value.uses())
            and not value.is_graph_output()
        ):
            assert node is not None
            inside[node] = None
            leaves.pop(value, None)
            waiting.extend(node.inputs)
        else:
            leaves[value] = None
    del inside[reduction]
    return tuple(inside), tuple(leaves)


def shape_of(value: ir.Value, shapes: dict[ir.Value, Shape | None]) -> Shape | None:
    """The shape of a value; of a result without one, what follows from the operator's inputs."""
    if value not in shapes:
        node = value.producer()
        if value.shape is not None:
            shapes[value] = None if value.shape.has_unknown_dim() else value.shape.dims
        elif node is None or node.domain or node.op_type not in ELEMENTWISE | {"MatMul", "Softmax", "Transpose"}:
            shapes[value] = None
        else:
            given = [shape_of(each, shapes) for each in node.inputs if each is not None]
            shapes[value] = _followed(node, given)
    return shapes[value]


def _followed(node: ir.Node, given: list[Shape | None]) -> Shape | None:
    """The shape of a result by those of the inputs."""
    if node.op_type not in {"MatMul", "Transpose"}:
        return _broadcast(given)
    first, second = given[0], given[-1]
    if first is None or second is None or min(len(first), len(second)) < 2:
        return None
    if node.op_type == "Transpose":
        return tuple(first[axis] for axis in node.attributes.get_ints("perm", range(len(first))[::-1]))
    batch = _broadcast([first[:-2], second[:-2]])
    return None if batch is None else (*batch, first[-2], second[-1])


def _broadcast(shapes: list[Shape | None]) -> Shape | None:
    result: list[int | ir.SymbolicDim] = []
    for shape in shapes:
        if shape is None:
            return None
        result[:0] = [1] * (len(shape) - len(result))
        for index, dim in enumerate(shape, len(result) - len(shape)):
            if result[index] != dim and 1 not in (result[index], dim):
                return None
            result[index] = dim if result[index] == 1 else result[index]
    return tuple(result)


def in_numbers(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """A shape where dynamic dims have these sizes; None if one is unknown."""
    known = tuple(size for dim in shape if (size := size_of(dim, sizes)) is not None)
    return known if len(known) == len(shape) else None
