"""Elements put to positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast
from .indexing import scatter_reduce

_MEAN, _MAXIMUM = 1, 2
"""Modes of embedding_bag; 0 is the sum."""


@translates("aten::as_strided_scatter")
def as_strided_scatter(self: ir.Value, src: ir.Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> Any:
    """aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor.

    The strides are those of a contiguous `self`.
    """
    places = op.Reshape(storage_offset or 0, [1])
    for length, step in zip(size, stride, strict=True):
        places = op.Reshape(op.Add(op.Unsqueeze(places, [-1]), op.Mul(op.Range(0, length, 1), step)), [-1])
    elements = op.Reshape(cast(src, self.dtype), [-1])
    made = op.ScatterElements(op.Reshape(self, [-1]), places, elements, axis=0)
    return op.Reshape(made, op.Shape(self), allowzero=1)


@translates("aten::histc")
def histc(self: ir.Value, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor: (bins), in the dtype of `self`, floats.

    How many elements are in each of `bins` intervals of one width from `min` to `max`, which belongs to the last one. The extrema of the
    elements stand for `min` and `max` where these are equal.
    """
    flat = op.Reshape(self, [-1])
    low, high = op.CastLike(float(min), self), op.CastLike(float(max), self)
    if min == max:
        least, most, one = op.ReduceMin(flat, keepdims=0), op.ReduceMax(flat, keepdims=0), op.CastLike(1.0, self)
        are_equal = op.Equal(least, most)
        low, high = op.Where(are_equal, op.Sub(least, one), least), op.Where(are_equal, op.Add(most, one), most)
    # NOTE: in the order of PyTorch's kernel, HistogramKernel.cpp, which rounds each result to the dtype.
    place = op.Div(op.Mul(op.Sub(flat, low), op.CastLike(float(bins), self)), op.Sub(high, low))
    place = op.Min(op.Cast(place, to=int(ir.DataType.INT64)), bins - 1)
    is_counted = op.And(op.GreaterOrEqual(flat, low), op.LessOrEqual(flat, high))
    # NOTE: elements outside the range go to an extra interval, which is cut off.
    places = op.Unsqueeze(op.Where(is_counted, place, bins), [-1])
    ones = op.Expand(op.Constant(value_float=1.0), op.Shape(flat))
    counts = op.ScatterND(np.zeros(bins + 1, dtype=np.float32), places, ones, reduction="add")
    return op.CastLike(op.Slice(counts, [0], [bins], [0]), self)


@translates("aten::index_add")
def index_add(self: ir.Value, dim: int, index: ir.Value, source: ir.Value, alpha: Any = 1) -> Any:
    """aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor.

    `self` with slice i of `source` along `dim`, times `alpha`, added to slice `index[i]` (INT32 or INT64, a vector).
    """
    assert self.shape is not None
    rank = max(len(self.shape), 1)
    added = source if alpha == 1 else op.Mul(source, op.CastLike(alpha, source))
    whole, added = (each if self.shape else op.Reshape(each, [-1]) for each in (self, added))
    # NOTE: ONNX adds to the slices of the first dim.
    order = list(range(rank))
    order[0], order[dim] = order[dim], order[0]
    whole, added = (op.Transpose(each, perm=order) if dim % rank else each for each in (whole, added))
    places = op.Reshape(cast(index, int(ir.DataType.INT64)), [-1, 1])
    result = op.ScatterND(whole, places, added, reduction="add")
    result = op.Transpose(result, perm=order) if dim % rank else result
    return result if self.shape else op.Reshape(result, [])


@translates("aten::bincount")
def bincount(self: ir.Value, weights: ir.Value | None = None, minlength: Any = 0) -> Any:
    """aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor.

    How often each number from 0 on is in `self`, ints (N): INT64. With `weights`, the sums of the weights, in their dtype if that is
    FLOAT, otherwise in DOUBLE.
    """
    places = op.Cast(self, to=int(ir.DataType.INT64))
    # NOTE: of no numbers, the largest is -1.
    length = op.Max(op.Add(op.ReduceMax(op.Concat(places, [-1], axis=0), [0], keepdims=1), 1), op.Reshape(minlength, [1]))
    if weights is None:
        shares = op.Expand(1, op.Shape(places))
    else:
        shares = weights if weights.dtype is ir.DataType.FLOAT else op.Cast(weights, to=int(ir.DataType.DOUBLE))
    return op.ScatterElements(op.Expand(op.CastLike(0, shares), length), places, shares, axis=0, reduction="add")


@translates("aten::put")
def put(self: ir.Value, index: ir.Value, source: ir.Value, accumulate: bool = False) -> Any:
    """aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor. Positions in the flattened tensor."""
    flat = op.Reshape(self, [-1])
    size = op.Size(self)
    place = op.Reshape(index, [-1])
    place = op.Where(op.Less(place, 0), op.Add(place, size), place)
    made = op.ScatterElements(flat, place, op.Reshape(source, [-1]), axis=0, reduction="add" if accumulate else "none")
    return op.Reshape(made, op.Shape(self), allowzero=1)


@translates("aten::scatter.src")
def scatter(self: ir.Value, dim: int, index: ir.Value, src: ir.Value) -> Any:
    """aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor.

    All have as many dims. `index` (INT64) is at most as large as `src` in every dim, and as `self` in every other dim than `dim`.
    """
    return _scattered(self, dim, index, src, "none")


@translates("aten::scatter.value")
def scatter_value(self: ir.Value, dim: int, index: ir.Value, value: Any) -> Any:
    """aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor. As `scatter`; the value may depend on a size."""
    sources = op.Expand(op.CastLike(value, self), op.Shape(index))
    sources.shape = index.shape
    return _scattered(self, dim, index, sources, "none")


@translates("aten::scatter_add")
def scatter_add(self: ir.Value, dim: int, index: ir.Value, src: ir.Value) -> Any:
    """aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor. Shapes as for `scatter`."""
    return _scattered(self, dim, index, src, "add")


def _scattered(value: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduction: str) -> Any:
    assert value.shape is not None
    if not value.shape:
        vectors = [op.Reshape(each, [1]) for each in (value, index, src)]
        return op.Reshape(op.ScatterElements(*vectors, axis=0, reduction=reduction), [])
    if src.shape != index.shape or None in (src.shape or [None]):
        sizes = op.Shape(index)
        src = op.Slice(src, op.Mul(sizes, 0), sizes)
    return op.ScatterElements(value, index, src, axis=dim, reduction=reduction)


@translates("aten::scatter.reduce")
def scatter_with(self: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str) -> Any:
    """aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor.

    `reduce` is add or multiply; shapes as for `scatter`.
    """
    return scatter_reduce(self, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


@translates("aten::scatter.value_reduce")
def scatter_number_with(self: ir.Value, dim: int, index: ir.Value, value: Any, reduce: str) -> Any:
    """aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor. As `scatter_with`."""
    source: Any = op.Expand(op.CastLike(value, self), op.Shape(index))
    source.shape = index.shape
    return scatter_with(self, dim, index, source, reduce)


@translates("aten::index_reduce")
def index_reduce(self: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduce: str, include_self: bool = True) -> Any:
    """aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor.

    `source` is like `self`, but has size N along `dim`, and `index` (N) says where each of its slices goes.
    """
    assert self.shape is not None
    if not self.shape:
        place, single = op.Reshape(index, []), op.Reshape(source, [])
        place.shape = single.shape = ir.Shape([])
        return scatter_reduce(self, dim, place, single, reduce, include_self)
    shape = [1] * len(self.shape)
    shape[dim] = -1
    positions: Any = op.Expand(op.Reshape(index, shape), op.Shape(source))
    positions.shape = source.shape
    return scatter_reduce(self, dim, positions, source, reduce, include_self)


@translates("aten::resize")
def resize(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor. The elements in their order, then zeros.

    PyTorch leaves the elements behind those of `self` uninitialized.
    """
    flat = op.Reshape(self, [-1])
    shape = op.Concat(*(op.Reshape(each, [1]) if isinstance(each, ir.Value) else op.Constant(value_ints=[each]) for each in size), axis=0)
    return op.Reshape(_of_length(flat, op.ReduceProd(shape, None, keepdims=1), self), shape, allowzero=1) if size else op.Gather(flat, 0)


@translates("aten::resize_as")
def resize_as(self: ir.Value, the_template: ir.Value) -> Any:
    """aten::resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor. As `resize`."""
    return op.Reshape(_of_length(op.Reshape(self, [-1]), op.Reshape(op.Size(the_template), [1]), self), op.Shape(the_template), allowzero=1)


def _of_length(flat: Any, length: Any, like: ir.Value) -> Any:
    missing = op.Max(op.Sub(length, op.Shape(flat)), op.Constant(value=ir.tensor(np.zeros(1, dtype=np.int64))))
    longer = op.Concat(flat, op.Expand(op.CastLike(0, like), missing), axis=0)
    return op.Slice(longer, [0], length, [0])


@translates("aten::embedding_bag.padding_idx")
def embedding_bag_padding_idx(
    weight: ir.Value,
    indices: ir.Value,
    offsets: ir.Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: ir.Value | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> list[Any]:
    """aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, ...) -> (Tensor, Tensor, Tensor, Tensor).

    As `embedding_bag`, but a negative `padding_idx` counts from the end of `weight`.
    """
    if padding_idx is not None and padding_idx < 0:
        assert weight.shape is not None
        rows = weight.shape[0]
        if not isinstance(rows, int):
            raise ValueError("a negative padding_idx needs a fixed number of embeddings")
        padding_idx += rows
    return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)


@translates("aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::embedding_bag")
def embedding_bag(
    weight: ir.Value,
    indices: ir.Value,
    offsets: ir.Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: ir.Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> list[Any]:
    """aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, ...) -> (Tensor, Tensor, Tensor, Tensor).

    The first result (B, E) has one row for each bag: the sum (mode 0), the mean (1) or the maximum (2) of the rows of `weight` (V, E) at
    `indices` (N), from its offset in `offsets` (B) up to the next one. A `padding_idx` of at least 0 counts for nothing, and an empty bag
    gives 0. With `include_last_offset`, `offsets` (B + 1) ends with N. The third result has the sizes of the bags (B). The others are None:
    only gradients need them, and their shapes depend on PyTorch's kernel.
    """
    del scale_grad_by_freq, sparse
    indices, offsets = (op.Cast(each, to=int(ir.DataType.INT64)) for each in (indices, offsets))
    rows = op.Gather(weight, indices)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Unsqueeze(per_sample_weights, [1]))
    count = op.Expand(1, op.Shape(indices))
    if padding_idx is not None and padding_idx >= 0:
        kept = op.Not(op.Equal(indices, padding_idx))
        count = op.Cast(kept, to=int(ir.DataType.INT64))
        rows = op.Where(op.Unsqueeze(kept, [1]), rows, op.CastLike(-np.inf if mode == _MAXIMUM else 0.0, rows))
    # NOTE: one offset more than there are indices stands for the end.
    starts = op.Expand(0, op.Add(op.Shape(indices), [1]))
    starts = op.ScatterElements(starts, offsets, op.Expand(1, op.Shape(offsets)), axis=0, reduction="add")
    bags = op.Sub(op.Slice(op.CumSum(starts, 0), [0], [-1], [0]), 1)
    sizes = op.ScatterElements(op.Expand(0, op.Shape(offsets)), bags, count, axis=0, reduction="add")
    shape = op.Concat(op.Shape(offsets), op.Shape(weight, start=1, end=2), axis=0)
    empty = op.Expand(op.CastLike(-np.inf if mode == _MAXIMUM else 0.0, rows), shape)
    result = op.ScatterND(empty, op.Unsqueeze(bags, [1]), rows, reduction="max" if mode == _MAXIMUM else "add")
    if mode == _MAXIMUM:
        result = op.Where(op.Unsqueeze(op.Equal(sizes, 0), [1]), op.CastLike(0.0, rows), result)
    elif mode == _MEAN:
        result = op.Div(result, op.CastLike(op.Unsqueeze(op.Max(sizes, 1), [1]), rows))
    if include_last_offset:
        result, sizes = (op.Slice(each, [0], [-1], [0]) for each in (result, sizes))
    return [result, None, sizes, None]
