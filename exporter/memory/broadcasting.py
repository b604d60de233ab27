"""The shapes of tensors by those of what they are made of, and the operators that broadcast, repeat and reduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def axes_of(node: ir.Node, rank: int) -> tuple[int, ...]:
    """The dims that a reduction removes; none if only a run tells them."""
    if node.op_type in ARGUMENTS:
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        return (axis % rank,)
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is None:
        return () if {"axes", "noop_with_empty_axes"} & set(node.attributes) else tuple(range(rank))
    found = small_constant(given)
    return () if found is None else tuple(sorted(int(axis) % rank for axis in found.reshape(-1)))


def shape_of(value: ir.Value, shapes: dict[ir.Value, Shape | None]) -> Shape | None:
    """The shape of a value; of a result without one, what follows from the operator's inputs."""
    if value not in shapes:
        node = value.producer()
        if value.shape is not None:
            shapes[value] = None if value.shape.has_unknown_dim() else value.shape.dims
        elif node is None or node.domain or node.op_type not in _FOLLOWED:
            shapes[value] = None
        else:
            given = [shape_of(each, shapes) for each in node.inputs if each is not None]
            shapes[value] = _followed(node, given)
    return shapes[value]


def _followed(node: ir.Node, given: list[Shape | None]) -> Shape | None:
    """The shape of a result by those of the inputs."""
    followed = _FOLLOWED[node.op_type]
    if followed is None:
        return _broadcast(given)
    return None if not given or given[0] is None else followed(node, given[0], given[-1])


def _multiplied(_: ir.Node, first: Shape, second: Shape | None) -> Shape | None:
    if second is None or min(len(first), len(second)) < 2:
        return None
    batch = _broadcast([first[:-2], second[:-2]])
    return None if batch is None else (*batch, first[-2], second[-1])


def _transposed(node: ir.Node, first: Shape, _: Shape | None) -> Shape:
    return tuple(first[axis] for axis in node.attributes.get_ints("perm", range(len(first))[::-1]))


def _reduced(node: ir.Node, first: Shape, _: Shape | None) -> Shape | None:
    axes = axes_of(node, len(first))
    if not axes:
        return None
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(first) if axis not in axes or keeps_dims(node))


def _unsqueezed(node: ir.Node, first: Shape, _: Shape | None) -> Shape | None:
    axes = small_constant(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    if axes is None:
        return None
    rank, dims = len(first) + axes.size, iter(first)
    places = {int(axis) % rank for axis in axes.reshape(-1)}
    return tuple(1 if axis in places else next(dims) for axis in range(rank))


def _expanded(node: ir.Node, first: Shape, _: Shape | None) -> Shape | None:
    sizes = None if node.inputs[1] is None else small_constant(node.inputs[1])
    return None if sizes is None else _broadcast([first, tuple(int(size) for size in sizes)])


_FOLLOWED: Mapping[str, Callable[[ir.Node, Shape, Shape | None], Shape | None] | None] = {
    **dict.fromkeys(ELEMENTWISE | {"Softmax"}),
    **dict.fromkeys(REDUCTIONS | ARGUMENTS, _reduced),
    "Expand": _expanded,
    "MatMul": _multiplied,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
}
"""How the shape of an operator's result follows from those of its first and of its last input; None where it is broadcast."""


def keeps_dims(reduction: ir.Node) -> bool:
    """Whether the result of a reduction has dims of one element in the place of those that it removes."""
    return bool(reduction.attributes.get_int("keepdims", 1))


def repeats(node: ir.Node) -> bool:
    """Whether an operator's result is its first input, several times."""
    return node.op_type in {"Expand", "Tile"} or (node.op_type == "Gather" and _takes_one(node))


def _takes_one(gather: ir.Node) -> bool:
    """Whether a Gather takes the only element of a dim, as often as it has indices. `repeat_interleave` makes such ones."""
    given, made = (None if value is None else value.shape for value in (gather.inputs[0], gather.outputs[0]))
    # NOTE: a vector of indices keeps the number of dims.
    return given is not None and made is not None and len(given) == len(made) and given[gather.attributes.get_int("axis", 0)] == 1


def broadcasts(node: ir.Node, shapes: dict[ir.Value, Shape | None]) -> bool:
    """Whether `node`, which repeats, does what broadcasting does: dims that it repeats have one element."""
    given, made = (None if value is None else shape_of(value, shapes) for value in (node.inputs[0], node.outputs[0]))
    if given is None or made is None or len(given) > len(made):
        return False
    return all(dim in (1, other) for dim, other in zip(reversed(given), reversed(made), strict=False))


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
