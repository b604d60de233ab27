"""Picking elements by positions and masks, and scattering them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op, small_constant

from . import translates
from .casts import cast

_MASKS = (ir.DataType.BOOL, ir.DataType.UINT8)


@translates("aten::embedding")
def embedding(weight: ir.Value, indices: ir.Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, ...) -> Tensor: weight (N, E), indices (...), result (..., E).

    The other arguments matter for gradients only.
    """
    del padding_idx, scale_grad_by_freq, sparse
    return op.Gather(weight, indices)


@translates("aten::take")
def take(self: ir.Value, index: ir.Value) -> Any:
    """aten::take(Tensor self, Tensor index) -> Tensor. Elements of the flattened `self`, in the shape of `index` (INT64)."""
    return op.Gather(op.Reshape(self, [-1]), index)


@translates("aten::gather")
def gather(self: ir.Value, dim: int, index: ir.Value, sparse_grad: bool = False) -> Any:
    """aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor. Of the shape of `index`."""
    del sparse_grad
    assert self.shape is not None and index.shape is not None
    if not self.shape:
        return op.Expand(self, op.Shape(index))
    places = cast(index, int(ir.DataType.INT64))
    return op.GatherElements(self, places, axis=dim) if index.shape else op.Squeeze(op.Gather(self, op.Unsqueeze(places, [0])), [0])


@translates("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(self: ir.Value, indices: Sequence[ir.Value | None]) -> Any:
    """aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor, with numpy's rules.

    None keeps a dim, and a mask (BOOL or UINT8) stands for as many dims as it has. The broadcast shape of the indices takes the place of
    the indexed dims; it comes first where dims are kept between them.
    """
    assert self.shape is not None
    if (chosen := _chosen(self, indices)) is not None:
        return chosen
    axes, picked = _picked(indices)
    if len(picked) == 1:
        return op.Gather(self, picked[0], axis=axes[0])
    rest = [axis for axis in range(len(self.shape)) if axis not in axes]
    rank = max(len(each.shape) for each in picked if each.shape is not None)
    tuples = op.Concat(*(op.Unsqueeze(each, [-1]) for each in _broadcast(picked)), axis=-1)
    result = op.GatherND(op.Transpose(self, perm=[*axes, *rest]), tuples)
    if axes[-1] - axes[0] + 1 > len(axes):
        # NOTE: dims are kept between the picked ones, so the new dims come first.
        return result
    before = axes[0]
    return op.Transpose(result, perm=[*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))])


@translates("aten::index_put", "aten::_unsafe_index_put")
def index_put(self: ir.Value, indices: Sequence[ir.Value | None], values: ir.Value, accumulate: bool = False) -> Any:
    """aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor.

    `self` with `values` in place of, or with `accumulate` added to, the elements that `aten::index.Tensor` picks with `indices`. The shape
    of `values` broadcasts to that of these elements.
    """
    assert self.shape is not None and values.shape is not None
    if (masked := _masked(self, indices, values, accumulate)) is not None:
        return masked
    reduction = "add" if accumulate else None
    axes, picked = _picked(indices)
    rest, before = [axis for axis in range(len(self.shape)) if axis not in axes], axes[0]
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype in _MASKS:
        tuples = nonzero(indices[0])
        rank, sizes = 1, op.Slice(op.Shape(tuples), [0], [1], [0])
    else:
        rank = max(len(each.shape) for each in picked if each.shape is not None)
        picked = _broadcast(picked)
        tuples, sizes = op.Concat(*(op.Unsqueeze(each, [-1]) for each in picked), axis=-1), op.Shape(picked[0])
    if before and axes[-1] - before + 1 == len(axes):
        # NOTE: the new dims of `values` come after the dims before the picked ones.
        values = op.Unsqueeze(values, [*range(rank + len(rest) - len(values.shape))])
        values = op.Transpose(values, perm=[*range(before, before + rank), *range(before), *range(before + rank, rank + len(rest))])
    if rest:
        sizes = op.Concat(sizes, op.Gather(op.Shape(self), rest), axis=0)
    order = [*axes, *rest]
    written = op.ScatterND(op.Transpose(self, perm=order), tuples, op.Expand(values, sizes), reduction=reduction)
    return op.Transpose(written, perm=[order.index(axis) for axis in range(len(order))])


def _picked(indices: Sequence[ir.Value | None]) -> tuple[list[int], list[ir.Value]]:
    """The dims that indices pick from, each with its positions."""
    positions: list[ir.Value | None] = []
    for each in indices:
        positions += _positions(each) if each is not None and each.dtype in _MASKS else [each]
    found = [(axis, each) for axis, each in enumerate(positions) if each is not None]
    return [axis for axis, _ in found], [each for _, each in found]


def _masked(value: ir.Value, indices: Sequence[ir.Value | None], values: ir.Value, accumulate: bool) -> Any:
    """`value`, written to where a single mask is true, if `values` has the same for all its elements; or else None."""
    found = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if len(found) != 1 or found[0][1].dtype not in _MASKS:
        return None
    ((axis, mask),) = found
    assert value.shape is not None and values.shape is not None and mask.shape is not None
    covered = len(mask.shape)
    after = len(value.shape) - axis - covered
    kept = op.Unsqueeze(op.Cast(mask, to=int(ir.DataType.BOOL)), [*range(covered, covered + after)])
    if len(values.shape) > after:
        counted = len(values.shape) - after - 1
        if values.shape[counted] != 1:
            return None
        values = op.Unsqueeze(values, [*range(counted, counted + covered - 1)])
    return op.Where(kept, op.Add(value, values) if accumulate else values, value)


@translates("aten::nonzero")
def nonzero(self: ir.Value) -> Any:
    """aten::nonzero(Tensor self) -> Tensor. The positions of all elements that are not 0: INT64 (count, rank), rank 0 of a scalar."""
    assert self.shape is not None
    if self.shape:
        # NOTE: ONNX Runtime has no kernel for DOUBLE.
        found = op.Cast(self, to=int(ir.DataType.BOOL)) if self.dtype is ir.DataType.DOUBLE else self
        return op.Transpose(op.NonZero(found), perm=[1, 0])
    count = op.Reshape(op.Cast(op.Cast(self, to=int(ir.DataType.BOOL)), to=int(ir.DataType.INT64)), [1])
    return op.Expand(op.Constant(value=ir.tensor(np.zeros((1, 0), dtype=np.int64))), op.Concat(count, [0], axis=0))


@translates("aten::nonzero_static")
def nonzero_static(self: ir.Value, size: Any, fill_value: int = -1) -> Any:
    """aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor. (size, rank): positions, then the filler."""
    assert self.shape is not None
    found = nonzero(self)
    filler = op.Expand(op.Constant(value=ir.tensor(np.array(fill_value))), op.Concat([size], [len(self.shape)], axis=0))
    return op.Slice(op.Concat(found, filler, axis=0), [0], [size], [0])


@translates("aten::masked_select")
def masked_select(self: ir.Value, mask: ir.Value) -> Any:
    """aten::masked_select(Tensor self, Tensor mask) -> Tensor. A vector of the elements for which the mask is true, both broadcast."""
    value, kept = op.Expand(self, op.Shape(mask)), op.Expand(mask, op.Shape(self))
    return op.Compress(op.Reshape(value, [-1]), op.Reshape(kept, [-1]))


@translates("aten::diagonal", "aten::diagonal_copy")
def diagonal(self: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a). The diagonal is the last dim of the result."""
    rows, _, positions = _diagonal(self, offset, dim1, dim2)
    return op.Gather(rows, positions, axis=-1)


@translates("aten::diagonal_scatter")
def diagonal_scatter(self: ir.Value, src: ir.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor.

    `self` with `src`, of the shape of the diagonal, in place of the diagonal.
    """
    rows, order, positions = _diagonal(self, offset, dim1, dim2)
    written = op.ScatterElements(rows, op.Expand(positions, op.Shape(src)), cast(src, self.dtype), axis=-1)
    turned = op.Reshape(written, op.Shape(op.Transpose(self, perm=order)), allowzero=1)
    return op.Transpose(turned, perm=[order.index(axis) for axis in range(len(order))])


@translates("aten::select_scatter")
def select_scatter(self: ir.Value, src: ir.Value, dim: int, index: Any) -> Any:
    """aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor. `self` with `src` at one position of `dim`."""
    assert self.shape is not None
    axis = dim % len(self.shape)
    return _overwritten(self, op.Unsqueeze(cast(src, self.dtype), [axis]), axis, index, 1)


@translates("aten::slice_scatter")
def slice_scatter(self: ir.Value, src: ir.Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor.

    `self` with `src`, of the shape of the slice, in place of the slice.
    """
    assert self.shape is not None
    rank = len(self.shape)
    axis, start, src = dim % rank, 0 if start is None else start, cast(src, self.dtype)
    if isinstance(step, int) and step == 1:
        return _overwritten(self, src, axis, start, None if src.shape is None else src.shape[axis])
    every = op.Range(0, op.Squeeze(op.Shape(self, start=axis, end=axis + 1)), 1)
    positions = op.Slice(every, [start], [_END if end is None else end], [0], [step])
    places = op.Reshape(positions, [1] * axis + [-1] + [1] * (rank - axis - 1), allowzero=1)
    return op.ScatterElements(self, op.Expand(places, op.Shape(src)), src, axis=axis)


_END = 2**63 - 1


def _overwritten(self: ir.Value, part: Any, axis: int, start: Any, length: Any) -> Any:
    """`self` with `part` in place of `length` elements from `start`, which counts from the end if it is negative."""
    assert self.shape is not None
    size = self.shape[axis]
    if isinstance(start, int) and isinstance(size, int):
        start = min(max(start + size if start < 0 else start, 0), size)
    is_first = isinstance(start, int) and start == 0
    before = [] if is_first else [op.Slice(self, [0], [start], [axis])]
    if isinstance(start, int) and isinstance(size, int) and isinstance(length, int):
        after = [] if start + length >= size else [op.Slice(self, [start + length], [_END], [axis])]
    else:
        end: Any = op.Shape(part, start=axis, end=axis + 1)
        for each in before:
            end = op.Add(op.Shape(each, start=axis, end=axis + 1), end)
        after = [op.Slice(self, end, [_END], [axis])]
    pieces = [*before, part, *after]
    return part if len(pieces) == 1 else op.Concat(*pieces, axis=axis)


def _diagonal(self: ir.Value, offset: int, dim1: int, dim2: int) -> tuple[Any, list[int], Any]:
    """Matrices as rows of the last dim, the order of dims that puts the matrix last, and the positions of the diagonal in a row."""
    assert self.shape is not None
    rank = len(self.shape)
    first, second = dim1 % rank, dim2 % rank
    order = [*(axis for axis in range(rank) if axis not in (first, second)), first, second]
    turned = op.Transpose(self, perm=order)
    height, width = (op.Shape(self, start=axis, end=axis + 1) for axis in (first, second))
    count = op.Max(0, op.Min(op.Sub(height, max(-offset, 0)), op.Sub(width, max(offset, 0))))
    start = op.Add(op.Mul(width, max(-offset, 0)), max(offset, 0))
    positions = op.Add(op.Mul(op.Range(0, op.Squeeze(count), 1), op.Add(width, 1)), start)
    rows = op.Reshape(turned, op.Concat(op.Shape(turned, start=0, end=rank - 2), op.Mul(height, width), axis=0), allowzero=1)
    return rows, order, positions


@translates("aten::searchsorted.Tensor")
def searchsorted(
    sorted_sequence: ir.Value,
    self: ir.Value,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: ir.Value | None = None,
) -> Any:
    """aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, ...) -> Tensor.

    For each value, how many elements of the last dim of `sorted_sequence` are smaller; with `right`, how many are not larger. NaN is the
    largest. INT64, or INT32 with `out_int32`. Each value is compared with each element.
    """
    assert sorted_sequence.shape is not None
    rank = len(sorted_sequence.shape)
    ordered = sorted_sequence if sorter is None else op.GatherElements(sorted_sequence, sorter, axis=-1)
    rows = ordered if rank == 1 else op.Unsqueeze(ordered, [-2])
    values = op.Unsqueeze(self, [-1])
    # NOTE: not LessOrEqual and Less: no element is before NaN in ONNX.
    before = op.Not(op.Greater(rows, values) if right or side == "right" else op.GreaterOrEqual(rows, values))
    count = op.ReduceSum(op.Cast(before, to=int(ir.DataType.INT64)), [-1], keepdims=0)
    return op.Cast(count, to=int(ir.DataType.INT32)) if out_int32 else count


@translates("aten::bucketize.Tensor")
def bucketize(self: ir.Value, boundaries: ir.Value, out_int32: bool = False, right: bool = False) -> Any:
    """aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor. As `searchsorted`."""
    return searchsorted(boundaries, self, out_int32, right)


def _chosen(value: ir.Value, indices: Sequence[ir.Value | None]) -> Any:
    """What a single mask picks, without an index for each of its dims; None if it takes such indices."""
    ((axis, mask), *others) = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if others or mask.dtype not in _MASKS or not mask.shape:
        return None
    known = small_constant(mask)
    if known is not None:
        return op.Gather(value, op.Constant(value=ir.tensor(np.flatnonzero(known))), axis=axis) if known.ndim == 1 else None
    assert value.shape is not None
    if len(mask.shape) == 1:
        return op.Compress(value, op.Cast(mask, to=int(ir.DataType.BOOL)), axis=axis)
    if len(mask.shape) == len(value.shape):
        return op.Compress(value, op.Reshape(op.Cast(mask, to=int(ir.DataType.BOOL)), [-1]))
    return op.GatherND(value, nonzero(mask)) if axis == 0 else None


def _positions(mask: ir.Value) -> list[ir.Value | None]:
    """The positions of a mask's true elements: a vector for each of its dims."""
    assert mask.shape is not None
    rows = op.NonZero(mask)
    made: list[ir.Value | None] = []
    for axis in range(len(mask.shape)):
        row: Any = op.Gather(rows, axis, axis=0)
        row.shape = ir.Shape([None])
        made.append(row)
    return made


def _broadcast(values: Sequence[Any]) -> list[Any]:
    first = values[0].shape
    if None not in first.dims and all(value.shape == first for value in values):
        return list(values)
    if all(isinstance(size, int) for value in values for size in value.shape):
        sizes = np.broadcast_shapes(*(tuple(value.shape) for value in values))
        expanded = [value if tuple(value.shape) == sizes else op.Expand(value, list(sizes)) for value in values]
        for each in expanded:
            each.shape = ir.Shape(sizes)
        return expanded
    shape = op.Shape(functools.reduce(op.Add, values))
    return [op.Expand(value, shape) for value in values]


_REDUCTIONS: dict[str, tuple[str, int | str]] = {
    "sum": ("add", 0),
    "mean": ("add", 0),
    "prod": ("mul", 1),
    "amax": ("max", "lowest"),
    "amin": ("min", "highest"),
}
"""ONNX's reduction by PyTorch's name, and its neutral element."""


@translates("aten::scatter_reduce.two")
def scatter_reduce(self: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str, include_self: bool = True) -> Any:
    """aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor.

    ONNX has no mean: it is a sum divided by a count, and rounded down for ints.
    """
    assert self.shape is not None
    if not self.shape:
        data, positions, sources = (op.Unsqueeze(value, [0]) for value in (self, index, src))
        data.shape = positions.shape = sources.shape = ir.Shape([1])
        return op.Squeeze(scatter_reduce(data, 0, positions, sources, reduce, include_self), [0])
    reduction, neutral = _REDUCTIONS[reduce]
    sizes = op.Shape(index)
    if src.shape != index.shape or src.shape is None:
        src = op.Slice(src, op.Mul(sizes, 0), sizes)
    base = self
    if not include_self:
        base = op.ScatterElements(self, index, op.Expand(_number(neutral, self), sizes), axis=dim)
    result = op.ScatterElements(base, index, src, axis=dim, reduction=reduction)
    if reduce != "mean":
        return result
    own = op.Expand(_number(int(include_self), self), op.Shape(self))
    counts = op.ScatterElements(own, index, op.Expand(_number(1, self), sizes), axis=dim, reduction="add")
    counts = op.Max(counts, _number(1, self))
    if self.dtype is not None and not self.dtype.is_floating_point():
        # NOTE: ONNX's Div of ints rounds toward zero.
        result = op.Sub(result, op.Mod(result, counts))
    return op.Div(result, counts)


def _number(value: int | str, like: ir.Value) -> Any:
    assert like.dtype is not None
    dtype = like.dtype.numpy()
    if like.dtype is ir.DataType.BOOL:
        return op.Constant(value=ir.tensor(value in (1, "highest")))
    if isinstance(value, str):
        lowest, highest = (-np.inf, np.inf) if like.dtype.is_floating_point() else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return op.Constant(value=ir.tensor(np.array(lowest if value == "lowest" else highest, dtype=dtype)))
    return op.Constant(value=ir.tensor(np.array(value, dtype=dtype)))
