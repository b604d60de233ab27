"""Merges chains of operators that only rearrange a tensor: at most a Reshape, a Transpose and a Reshape are left of each.

The dims of a tensor are products of factors. A chain splits dims into factors, reorders the factors and joins them again, so it is known
by the factors of its result in their order. Chains whose Reshapes mix factors otherwise stay as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxplain.recording import small_constant

from .names import free, names_in

_LAYOUT = frozenset({"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


@dataclass(eq=False)
class _Factor:
    """A factor of a dim of the chain's input.

    Attributes:
        size: Its size; the name of a dynamic dim, which has no other factors.
        split: The two factors that it was split into, the slower one first.
    """

    size: int | str
    split: tuple[_Factor, _Factor] | None = field(default=None)

    def parts(self) -> list[_Factor]:
        """The factors that it was split into; itself if it was not split."""
        return [self] if self.split is None else [part for each in self.split for part in each.parts()]


_Dims = list[list[_Factor]]
"""The factors of each dim, the slowest one first. A dim of size 1 has none."""


class _UnknownError(Exception):
    """The chain does more than to reorder factors, or sizes are not known."""


def merge_layouts(model: ir.Model) -> None:
    """Replaces each chain of Reshape, Transpose, Squeeze, Unsqueeze and Flatten by fewer nodes where that is possible.

    A value that has other uses ends a chain: otherwise it would be rearranged twice. A Reshape to a computed shape gets a constant one.
    """
    constants = Constants(model.graph)
    for node in list(model.graph.all_nodes()):
        if not _is_layout(node) or _next(node) is not None:
            continue
        chain = [node]
        while (before := _before(chain[0])) is not None:
            chain.insert(0, before)
        if len(chain) > 1 or _has_computed_shape(node):
            _merge(chain, constants)


def _is_layout(node: ir.Node) -> bool:
    return node.op_type in _LAYOUT and not node.domain


def _next(node: ir.Node) -> ir.Node | None:
    """The node that continues the chain: the only user of the result."""
    result = node.outputs[0]
    uses = result.uses()
    if len(uses) != 1 or result.is_graph_output():
        return None
    ((user, index),) = uses
    return user if index == 0 and _is_layout(user) and user.graph is node.graph else None


def _before(node: ir.Node) -> ir.Node | None:
    producer = None if node.inputs[0] is None else node.inputs[0].producer()
    return producer if producer is not None and _is_layout(producer) and _next(producer) is node else None


def _has_computed_shape(node: ir.Node) -> bool:
    return node.op_type == "Reshape" and node.inputs[1] is not None and node.inputs[1].const_value is None


def _merge(chain: Sequence[ir.Node], constants: Constants) -> None:
    base, result = chain[0].inputs[0], chain[-1].outputs[0]
    if base is None or base.shape is None:
        return
    try:
        first = [[] if size == 1 else [_Factor(_size(size))] for size in base.shape]
        last = first
        for node in chain:
            last = _applied(node, last)
        steps = _fewest_steps(_split(first), _split(last))
    except _UnknownError:
        return
    # NOTE: an output of the model cannot be the input of the chain.
    is_shorter = len(steps) < len(chain) + any(map(_has_computed_shape, chain))
    if is_shorter and (steps or not result.is_graph_output()):
        _replace(chain, steps, constants)


def _size(size: int | ir.SymbolicDim) -> int | str:
    if isinstance(size, int) and size > 0:
        return size
    if isinstance(size, int) or size.value is None:
        raise _UnknownError
    return size.value


def _split(dims: _Dims) -> _Dims:
    return [[part for factor in dim for part in factor.parts()] for dim in dims]


def _applied(node: ir.Node, dims: _Dims) -> _Dims:
    """The dims of the result of `node`."""
    dims = _split(dims)
    match node.op_type:
        case "Transpose":
            order = node.attributes["perm"].as_ints() if "perm" in node.attributes else range(len(dims))[::-1]
            return [dims[axis] for axis in order]
        case "Flatten":
            axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
            return [list(itertools.chain(*dims[:axis])), list(itertools.chain(*dims[axis:]))]
        case "Unsqueeze":
            axes = _constant(node, 1)
            rank = len(dims) + len(axes)
            rest = iter(dims)
            added = {axis % rank for axis in axes}
            return [[] if axis in added else next(rest) for axis in range(rank)]
        case "Squeeze":
            if not dims:
                raise _UnknownError
            removed = {axis % len(dims) for axis in _constant(node, 1)}
            return [dim for axis, dim in enumerate(dims) if axis not in removed]
        case _:
            return _reshaped(node, dims)


def _constant(node: ir.Node, index: int) -> list[int]:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.const_value is None:
        raise _UnknownError
    return [int(each) for each in value.const_value.numpy().reshape(-1)]


def _reshaped(node: ir.Node, dims: _Dims) -> _Dims:
    if _has_computed_shape(node):
        shape = node.outputs[0].shape
        if shape is None:
            raise _UnknownError
        sizes = [_size(size) for size in shape]
    else:
        sizes = [*_constant(node, 1)]
        if 0 in sizes and "allowzero" in node.attributes and node.attributes["allowzero"].as_int():
            raise _UnknownError
    left = list(itertools.chain(*dims))
    rest = sizes.index(-1) if -1 in sizes else len(sizes)
    front = [_taken(left, 0, size, dims[axis : axis + 1]) for axis, size in enumerate(sizes[:rest])]
    back = [_taken(left, -1, sizes[axis], dims[axis : axis + 1]) for axis in range(len(sizes) - 1, rest, -1)]
    if rest < len(sizes):
        return [*front, left, *back[::-1]]
    if left:
        raise _UnknownError
    return front


def _taken(left: list[_Factor], end: int, size: int | str, same: _Dims) -> list[_Factor]:
    """Takes the factors of a dim from the factors that are left, from the front (0) or from the back (-1).

    Args:
        left: The factors that are left.
        end: Where to take them.
        size: The size of the dim. 0 is that of the input's dim at the same place.
        same: That dim.
    """
    if isinstance(size, str):
        if not left or left[end].size != size:
            raise _UnknownError
        return [left.pop(end)]
    if size == 0:
        wanted = list(itertools.chain(*same))
        if [left.pop(end) for _ in wanted[: len(left)]][:: -1 if end else 1] != wanted:
            raise _UnknownError
        return wanted
    found: list[_Factor] = []
    while size > 1:
        if not left or isinstance(left[end].size, str):
            raise _UnknownError
        factor = left.pop(end)
        length = int(factor.size)
        if size % length:
            if length % size:
                raise _UnknownError
            inner, rest = _Factor(size), _Factor(length // size)
            factor.split = (rest, inner) if end else (inner, rest)
            left.insert(len(left) if end else 0, rest)
            factor, length = inner, size
        found.insert(0 if end else len(found), factor)
        size //= length
    return found


_Step = tuple[str, list[int]]
"""An operator, and its permutation or its shape."""


def _fewest_steps(first: _Dims, last: _Dims) -> list[_Step]:
    """The operators that make `last` of `first`."""
    order, wanted = list(itertools.chain(*first)), list(itertools.chain(*last))
    if order == wanted:
        return _reshape(first, last)
    place = {factor: index for index, factor in enumerate(order)}
    # NOTE: blocks of factors that stay together. Cut where the dims of the first or of the last shape begin, they may save a Reshape.
    blocks = (_blocks(last, place, cut) for cut in (first, last, []))
    options = [steps for each in blocks if (steps := _by_transpose(first, each, last, place)) is not None]
    if not options:
        raise _UnknownError
    return min(options, key=len)


def _blocks(last: _Dims, place: dict[_Factor, int], cut: _Dims) -> _Dims:
    """Runs of factors of the result that are neighbours in the input as well, cut where the dims of `cut` begin."""
    begins = {dim[0] for dim in cut if dim}
    blocks: _Dims = []
    for factor in itertools.chain(*last):
        if blocks and place[factor] == place[blocks[-1][-1]] + 1 and factor not in begins:
            blocks[-1].append(factor)
        else:
            blocks.append([factor])
    return blocks


def _by_transpose(first: _Dims, blocks: _Dims, last: _Dims, place: dict[_Factor, int]) -> list[_Step] | None:
    """The operators that reorder blocks; None if their sizes cannot be told to a Reshape."""
    ordered = sorted(blocks, key=lambda block: place[block[0]])
    before = first if [dim for dim in first if dim] == ordered else ordered
    ones = [dim for dim in last if not dim]
    after = [dim for dim in before if not dim] + blocks
    if [dim for dim in last if dim] == blocks and (before is ordered or before.count([]) == len(ones)):
        # NOTE: the dims of size 1 come to where they are in the result.
        before, after = first if before is first else [*ones, *ordered], last
    permutation = _permutation(before, after)
    try:
        return [*_reshape(first, before), ("Transpose", permutation), *_reshape(after, last)]
    except _UnknownError:
        return None


def _permutation(before: _Dims, after: _Dims) -> list[int]:
    """The places in `before` of the dims of `after`."""
    ones = iter([axis for axis, dim in enumerate(before) if not dim])
    places = {dim[0]: axis for axis, dim in enumerate(before) if dim}
    return [places[dim[0]] if dim else next(ones) for dim in after]


def _reshape(dims: _Dims, wanted: _Dims) -> list[_Step]:
    """The Reshape from dims to others with the same factors in the same order; none if they are the same."""
    if dims == wanted:
        return []
    dynamic = [axis for axis, dim in enumerate(wanted) if any(isinstance(factor.size, str) for factor in dim)]
    shape = [int(np.prod([factor.size for factor in dim if isinstance(factor.size, int)], dtype=np.int64)) for dim in wanted]
    for axis in dynamic:
        shape[axis] = 0 if axis < len(dims) and dims[axis] == wanted[axis] else -1
    if shape.count(-1) > 1:
        raise _UnknownError
    return [("Reshape", shape)]


class Constants:
    """The shapes of new Reshapes as initializers; equal ones are one."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._names = names_in(graph)
        self._known: dict[tuple[int, ...], ir.Value] = {}
        for value in graph.initializers.values():
            # NOTE: weights are no shapes: they may have no data, and a checkpoint may change them.
            array = small_constant(value)
            if array is not None and array.dtype == np.int64 and array.ndim == 1 and array.size < 16:
                self._known.setdefault(tuple(array.tolist()), value)

    def vector(self, numbers: Sequence[int]) -> ir.Value:
        """The initializer with these numbers (INT64)."""
        key = tuple(numbers)
        if key not in self._known:
            name = self.free(f"shape_{'_'.join(map(str, numbers))}".replace("-", "m"))
            tensor = ir.tensor(list(numbers), dtype=ir.DataType.INT64, name=name)
            value = ir.Value(name=name, shape=ir.Shape([len(numbers)]), type=ir.TensorType(tensor.dtype), const_value=tensor)
            self._graph.register_initializer(value)
            self._known[key] = value
        return self._known[key]

    def free(self, wanted: str) -> str:
        """A name that no value has, like `wanted`."""
        return free(wanted, self._names)


def _replace(chain: Sequence[ir.Node], steps: Sequence[_Step], constants: Constants) -> None:
    value, result, last = chain[0].inputs[0], chain[-1].outputs[0], chain[-1]
    graph = last.graph
    assert isinstance(graph, ir.Graph)
    assert value is not None
    assert value.shape is not None
    sizes: list[int | ir.SymbolicDim | None] = list(value.shape)
    for index, (op_type, numbers) in enumerate(steps):
        is_last = index == len(steps) - 1
        name = result.name if is_last else f"{result.name}.layout{index}"
        inputs = [value] if op_type == "Transpose" else [value, constants.vector(numbers)]
        attributes = [ir.AttrInt64s("perm", numbers)] if op_type == "Transpose" else []
        if op_type == "Transpose":
            sizes = [sizes[axis] for axis in numbers]
        else:
            sizes = [sizes[axis] if number == 0 else None if number == -1 else number for axis, number in enumerate(numbers)]
        shape = result.shape if is_last else ir.Shape(sizes)
        output = ir.Value(name=name, type=result.type, shape=shape)
        node = ir.Node(
            "", op_type, inputs, attributes, outputs=[output], name=f"{op_type}_{name}", metadata_props=dict(last.metadata_props)
        )
        node.meta.update(last.meta)
        graph.insert_before(last, node)
        value = output
    if steps:
        value.meta.update(result.meta)
    for index, output in enumerate(graph.outputs):
        if output is result:
            graph.outputs[index] = value
    ir.convenience.replace_all_uses_with(result, value)
    graph.remove(chain, safe=True)
