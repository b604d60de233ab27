"""Views and cuts of tensors, and how tensors are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.recording import SIZE, op
from onnxplain.source import locations
from onnxplain.torch_internals import shape_env

from . import emit, translates


@translates("aten::reshape")
def reshape(self: ir.Value, shape: Sequence[Any]) -> Any:
    """aten::reshape(Tensor self, SymInt[] shape) -> Tensor. Of that shape; -1 stands for the size that is left."""
    return view(self, shape)


@translates("aten::view", "aten::view_copy", "aten::_unsafe_view")
def view(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::view(Tensor self, SymInt[] size) -> Tensor. Of shape `size`; -1 stands for the size that is left."""
    symbolic = [position for position, each in enumerate(size) if isinstance(each, ir.Value)]
    known = [each for each in size if not isinstance(each, ir.Value)]
    if len(symbolic) == 1 and all(each > 0 for each in known):
        # NOTE: one size follows from the others, so the shape can be a constant.
        size = [-1 if position in symbolic else each for position, each in enumerate(size)]
    # NOTE: without `allowzero`, a size that turns out to be 0 would be that of the input there.
    zero = 0 in known or (len(symbolic) > 1 and any(_may_be_zero(size[position]) for position in symbolic))
    return op.Reshape(self, size, allowzero=1 if zero else None)


@translates("aten::reshape_as")
def reshape_as(self: ir.Value, other: ir.Value) -> Any:
    """aten::reshape_as(Tensor self, Tensor other) -> Tensor. Of the shape of `other`."""
    assert other.shape is not None
    known = all(isinstance(size, int) for size in other.shape)
    return op.Reshape(self, list(other.shape) if known else op.Shape(other), allowzero=None if known and 0 not in other.shape else 1)


def may_be_empty(value: ir.Value, axis: int, *, whatever_torch_found: bool = False) -> bool:
    """Whether a dim of a result may be 0 where all dims of the inputs are at least 1, as in `x[3:]`. See `shape_env.may_be_zero`."""
    node = value.meta.get(locations.FX_NODE)
    computed = node.meta.get("val") if node is not None else None
    return isinstance(computed, torch.Tensor) and shape_env.may_be_zero(computed.shape[axis], whatever_torch_found=whatever_torch_found)


def _may_be_zero(size: ir.Value) -> bool:
    return SIZE in size.meta and shape_env.may_be_zero(size.meta[SIZE])


def _has_size(value: ir.Value, axis: int, size: ir.Value) -> bool:
    """Whether a dim of a result has the computed `size` whatever the sizes of the inputs."""
    node = value.meta.get(locations.FX_NODE)
    computed = node.meta.get("val") if node is not None else None
    return isinstance(computed, torch.Tensor) and SIZE in size.meta and shape_env.is_true(computed.shape[axis] == size.meta[SIZE])


@translates("aten::split.sizes")
def split_sizes(self: ir.Value, split_size: Sequence[Any], dim: int = 0) -> list[ir.Value]:
    """aten::split.sizes(Tensor self, SymInt[] split_size, int dim=0) -> Tensor[]. One part for each size."""
    return split_with_sizes(self, split_size, dim)


@translates("aten::split_with_sizes", "aten::split_with_sizes_copy")
def split_with_sizes(self: ir.Value, split_sizes: Sequence[Any], dim: int = 0) -> list[ir.Value]:
    """aten::split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]. One part for each size."""
    if len(split_sizes) == 1:
        return [self]
    return emit("Split", [self, split_sizes], {"axis": dim}, outputs=len(split_sizes))


@translates("aten::unbind.int")
def unbind(self: ir.Value, dim: int = 0) -> Any:
    """aten::unbind.int(Tensor self, int dim=0) -> Tensor[]. The slices along `dim`, without that dim.

    Raises:
        ValueError: The size of `dim` is dynamic, so the number of results is unknown.
    """
    assert self.shape is not None
    size = self.shape[dim]
    if not isinstance(size, int):
        raise ValueError(f"unbind needs a dim of fixed size, dim {dim} has size {size}")
    parts = [self] if size == 1 else emit("Split", [self, [1] * size], {"axis": dim}, outputs=size)
    return [op.Squeeze(part, [dim]) for part in parts]


@translates("aten::split.Tensor", "aten::split_copy.Tensor", "aten::unsafe_split.Tensor")
def split(self: ir.Value, split_size: Any, dim: int = 0) -> Any:
    """aten::split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]. Parts of size `split_size`, the last one smaller.

    A dim of dynamic size gives an ONNX sequence, whose length is known only at run time.
    """
    assert self.shape is not None
    size = self.shape[dim]
    if not isinstance(size, int) or not isinstance(split_size, int):
        # NOTE: of an empty dim, ONNX makes no part.
        if isinstance(split_size, ir.Value) and _has_size(self, dim, split_size):
            return [self]
        return op.SplitToSequence(self, split_size, axis=dim)
    whole, rest = divmod(size, split_size)
    sizes = [split_size] * whole + [rest] * bool(rest)
    return split_with_sizes(self, sizes, dim)


@translates("aten::chunk")
def chunk(self: ir.Value, chunks: int, dim: int = 0) -> Any:
    """aten::chunk(Tensor self, int chunks, int dim=0) -> Tensor[]. At most `chunks` parts of one size, the last one may be smaller.

    Raises:
        ValueError: The size of `dim` is dynamic, so the number of results is unknown.
    """
    assert self.shape is not None
    size = self.shape[dim]
    if not isinstance(size, int):
        raise ValueError(f"chunk needs a dim of fixed size, dim {dim} has size {size}")
    return split_with_sizes(self, [0] * chunks, dim) if size == 0 else split(self, -(-size // chunks), dim)


@translates("aten::transpose.int")
def transpose(self: ir.Value, dim0: int, dim1: int) -> Any:
    """aten::transpose.int(Tensor self, int dim0, int dim1) -> Tensor. With the two dims exchanged."""
    assert self.shape is not None
    order = list(range(len(self.shape)))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return op.Transpose(self, perm=order)


@translates("aten::permute")
def permute(self: ir.Value, dims: Sequence[int]) -> Any:
    """aten::permute(Tensor self, int[] dims) -> Tensor. Dim i of the result is dim `dims[i]` of `self`."""
    return op.Transpose(self, perm=[dim % len(dims) for dim in dims])


@translates("aten::unsqueeze")
def unsqueeze(self: ir.Value, dim: int) -> Any:
    """aten::unsqueeze(Tensor self, int dim) -> Tensor. With a new dim of size 1."""
    return op.Unsqueeze(self, [dim])


@translates("aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims")
def squeeze(self: ir.Value, dim: int | Sequence[int] | None = None) -> Any:
    """aten::squeeze.dims(Tensor self, int[] dim) -> Tensor. Without those of the dims, or of all dims, whose size is 1 and not dynamic."""
    assert self.shape is not None
    rank = len(self.shape)
    dims = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    removed = sorted({each % rank for each in dims if rank and self.shape[each] == 1})
    return op.Squeeze(self, removed) if removed else self


@translates("aten::broadcast_to", "aten::expand")
def expand(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::expand(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor. Of shape `size`; -1 keeps a size, as 1 in ONNX."""
    return op.Expand(self, [1 if isinstance(each, int) and each == -1 else each for each in size])


@translates("aten::repeat_interleave.self_int")
def repeat_interleave(self: ir.Value, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    """aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor.

    Each slice of `dim`, or each element, `repeats` times. The result is one-dimensional if `dim` is None.
    """
    del output_size
    assert self.shape is not None
    if dim is None or not self.shape:
        self, dim = op.Reshape(self, [-1]), 0
    length = op.Shape(self, start=dim, end=None if dim == -1 else dim + 1)
    positions = op.Range(0, op.Squeeze(op.Mul(length, repeats)), 1)
    # NOTE: ONNX Runtime computes Div by 0 even of no positions.
    return op.Gather(self, op.Div(positions, max(repeats, 1) if isinstance(repeats, int) else op.Max(repeats, 1)), axis=dim)


@translates("aten::repeat_interleave.Tensor")
def repeated_positions(repeats: ir.Value, *, output_size: Any = None) -> Any:
    """aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor.

    Each position in `repeats`, a vector of ints, as often as its number says, in order. `output_size` is the sum.
    """
    del output_size
    counts = op.Cast(repeats, to=int(ir.DataType.INT64))
    length = op.ReduceSum(counts, [0], keepdims=1)
    # NOTE: where a position begins, the results go up by one; where none of it is wanted, by one more. There is room behind the last one.
    starts = op.Sub(op.CumSum(counts, 0), counts)
    ones = op.Expand(1, op.Shape(counts))
    steps = op.ScatterElements(op.Expand(0, op.Add(length, 1)), starts, ones, axis=0, reduction="add")
    return op.CastLike(op.Slice(op.Sub(op.CumSum(steps, 0), 1), [0], length, [0]), repeats)


@translates("aten::roll")
def roll(self: ir.Value, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor. Without dims, the elements in order."""
    if not dims:
        return op.Reshape(roll(op.Reshape(self, [-1]), shifts, [0]), op.Shape(self), allowzero=1)
    for shift, dim in zip(shifts, dims, strict=True):
        size = op.Shape(self, start=dim, end=None if dim == -1 else dim + 1)
        # NOTE: ONNX Runtime computes Mod by 0 even of no positions.
        positions = op.Mod(op.Sub(op.Range(0, op.Squeeze(size), 1), shift), op.Max(size, 1))
        self = op.Gather(self, positions, axis=dim)
    return self


@translates("aten::slice.Tensor")
def slice_(self: ir.Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """aten::slice.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor. `dim` is cut."""
    start, end = 0 if start is None else start, _END if end is None else end
    if (start, step) == (0, 1) and isinstance(end, int) and end >= _END:
        return self
    return op.Slice(self, [start], [end], [dim], [step])


_END = 2**63 - 1


@translates("aten::narrow")
def narrow(self: ir.Value, dim: int, start: Any, length: Any) -> Any:
    """aten::narrow(Tensor self, int dim, SymInt start, SymInt length) -> Tensor. `length` elements of `dim`, from `start` on."""
    if isinstance(start, int) and start >= 0:
        return slice_(self, dim, start, start + length)
    # NOTE: a negative start counts from the end. Then the last element may be that before 0, where no slice can end.
    return slice_(slice_(self, dim, start), dim, 0, length)


@translates("aten::select.int")
def select(self: ir.Value, dim: int, index: Any) -> Any:
    """aten::select.int(Tensor self, int dim, SymInt index) -> Tensor. Without `dim`."""
    return op.Gather(self, index, axis=dim)


@translates("aten::cat")
def cat(tensors: Sequence[ir.Value], dim: int = 0) -> Any:
    """aten::cat(Tensor[] tensors, int dim=0) -> Tensor. The sizes of `dim` add up.

    PyTorch leaves out tensors of shape (0), whatever the rank of the others.
    """
    return op.Concat(*([each for each in tensors if each.shape != (0,)] or tensors[:1]), axis=dim)


@translates("aten::flatten.using_ints")
def flatten(self: ir.Value, start_dim: int = 0, end_dim: int = -1) -> Any:
    """aten::flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor.

    The dims from `start_dim` to `end_dim` become one; a scalar becomes (1).
    """
    assert self.shape is not None
    rank = len(self.shape)
    if rank == 0:
        return op.Reshape(self, [1])
    start, end = start_dim % rank, end_dim % rank
    if start == end:
        return self
    if (start, end) == (1, rank - 1):
        return op.Flatten(self, axis=1)
    if (start, end) == (0, rank - 2):
        return op.Flatten(self, axis=rank - 1)
    # NOTE: a 0 copies the size of the same dim.
    behind = [_size(self, axis) for axis in range(end + 1, rank)]
    return op.Reshape(self, [*[0] * start, -1, *behind])


def _size(value: ir.Value, axis: int) -> Any:
    assert value.shape is not None
    size = value.shape[axis]
    return size if isinstance(size, int) else op.Shape(value, start=axis, end=axis + 1)


_NEW_DIMS = {1: ([0],), 2: ([0, 1], [0]), 3: ([0, 1, 2], [0, 2], [2])}
"""Where dims of size 1 are added to a tensor, by the rank it must have at least and by the rank it has."""


def _atleast(least: int) -> Callable[[Sequence[ir.Value]], list[Any]]:
    def translation(tensors: Sequence[ir.Value]) -> list[Any]:
        ranks = [len(each.shape or ()) for each in tensors]
        return [each if rank >= least else op.Unsqueeze(each, _NEW_DIMS[least][rank]) for each, rank in zip(tensors, ranks, strict=True)]

    translation.__name__ = translation.__qualname__ = f"atleast_{least}d"
    translation.__doc__ = f"aten::atleast_{least}d.Sequence(Tensor[] tensors) -> Tensor[]. With at least {least} dims."
    return translation


for _least in _NEW_DIMS:
    translates(f"aten::atleast_{_least}d.Sequence")(_atleast(_least))
