"""Order statistics: quantiles, medians, k-th values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates


@translates("aten::min.dim")
def min_dim(self: ir.Value, dim: int, keepdim: bool = False) -> Any:
    """aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices).

    Both lack `dim`, or have size 1 there if `keepdim` is true; the indices are INT64.
    """
    return _extreme("Min", self, dim, keepdim)


@translates("aten::max.dim")
def max_dim(self: ir.Value, dim: int, keepdim: bool = False) -> Any:
    """aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices).

    Both lack `dim`, or have size 1 there if `keepdim` is true; the indices are INT64.
    """
    return _extreme("Max", self, dim, keepdim)


def _extreme(name: str, value: ir.Value, dim: int, keepdim: bool) -> tuple[Any, Any]:
    assert value.shape is not None
    if not value.shape:
        return op.Identity(value), op.Constant(value=ir.tensor(np.array(0)))
    # NOTE: ONNX orders no bools.
    is_bool = value.dtype is ir.DataType.BOOL
    ordered = op.Cast(value, to=int(ir.DataType.INT32)) if is_bool else value
    extreme = getattr(op, f"Reduce{name}")(ordered, [dim], keepdims=int(keepdim))
    position = getattr(op, f"Arg{name}")(ordered, axis=dim, keepdims=int(keepdim))
    return (op.Cast(extreme, to=int(ir.DataType.BOOL)) if is_bool else extreme), position


@translates("aten::sort.stable")
def sort_stable(self: ir.Value, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices).

    The elements along a dim in order, NaN as the largest, and their positions (INT64). Equal elements keep their order: TopK puts the lower
    position first.
    """
    del stable
    assert self.shape is not None
    if not self.shape:
        return [self, op.Constant(value=ir.tensor(np.array(0)))]
    return list(_sorted_with_nan(self, dim % len(self.shape), descending=descending))


@translates("aten::sort")
def sort(self: ir.Value, dim: int = -1, descending: bool = False) -> Any:
    """aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices). As `sort.stable`."""
    return sort_stable(self, None, dim, descending)


@translates("aten::topk")
def topk(self: ir.Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices).

    Size `k` along `dim`; the indices are INT64.
    """
    assert self.shape is not None
    if not self.shape:
        return [op.Identity(self), op.Constant(value=ir.tensor(np.array(0)))]
    positions = op.Reshape(k, [1]) if isinstance(k, ir.Value) else [k]
    return emit("TopK", [self, positions], {"axis": dim, "largest": int(largest), "sorted": int(sorted)}, outputs=2)


@translates("aten::quantile")
def quantile(self: ir.Value, q: Any, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    """aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor.

    Without `dim`, or with size 1 for it where `keepdim` is true; a scalar if `dim` is None. A `q` (Q) adds a first dim of size Q. NaN among
    the elements gives NaN.
    """
    assert self.shape is not None
    rank = len(self.shape)
    axis = 0 if dim is None or not rank else dim % rank
    values = op.Reshape(self, [-1]) if dim is None or not rank else self
    values_rank = 1 if dim is None else max(rank, 1)
    position = op.Mul(q, op.CastLike(op.Sub(_size(values, axis), 1), self))
    low, high = op.Floor(position), op.Ceil(position)
    ordered, _ = _sorted(values, axis)
    below, above = (_picked(ordered, each, axis, values_rank) for each in (low, high))
    match interpolation:
        case "linear" | "midpoint":
            share = op.Sub(position, low) if interpolation == "linear" else op.CastLike(0.5, self)
            if interpolation == "linear" and _is_vector(q):
                share = op.Reshape(share, [-1, *[1] * values_rank])
            result = op.Add(below, op.Mul(op.Sub(above, below), share))
        case "lower":
            result = below
        case "higher":
            result = above
        case _:
            result = _picked(ordered, op.Round(position), axis, values_rank)
    is_nan = op.ReduceMax(op.Cast(op.IsNaN(values), to=int(ir.DataType.INT32)), [axis], keepdims=1)
    first = int(_is_vector(q))
    is_nan = op.Squeeze(is_nan, [axis])
    result = op.Squeeze(result, [axis + 1] if first else [0, axis + 1])
    result = op.Where(op.Cast(is_nan, to=int(ir.DataType.BOOL)), op.CastLike(float("nan"), self), result)
    if not keepdim or not rank:
        return result
    return op.Unsqueeze(result, [each + first for each in (range(rank) if dim is None else [axis])])


@translates("aten::quantile.scalar")
def quantile_scalar(self: ir.Value, q: float, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    """aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, ...) -> Tensor. As `quantile` with a scalar `q`."""
    return quantile(self, op.CastLike(q, self), dim, keepdim, interpolation)


def _is_vector(value: Any) -> bool:
    return isinstance(value, ir.Value) and value.shape is not None and len(value.shape) == 1


def _picked(ordered: Any, position: Any, axis: int, rank: int) -> Any:
    """The elements at each of the positions (P) along `axis`: (P, ...), where `axis` stays with size 1."""
    positions = op.Reshape(op.Cast(position, to=int(ir.DataType.INT64)), [-1, 1])
    found = op.Gather(ordered, positions, axis=axis)
    return op.Transpose(found, perm=[axis, *range(axis), *range(axis + 1, rank + 1)])


@translates("aten::median")
def median(self: ir.Value) -> Any:
    """aten::median(Tensor self) -> Tensor. A scalar: the lower one of the middle elements, NaN if an element is NaN."""
    flat = _flat(self)
    if not _may_be_empty(self):
        return median_dim(flat, 0)[0]
    if not _is_float(self):
        return nanmedian(self)
    count = op.ReduceSum(op.Cast(op.IsNaN(flat), to=int(ir.DataType.INT64)), keepdims=0)
    return op.Where(op.Greater(count, 0), op.CastLike(float("nan"), self), nanmedian(self))


@translates("aten::median.dim")
def median_dim(self: ir.Value, dim: int, keepdim: bool = False) -> Any:
    """aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices).

    The lower one of the middle elements and its position (INT64), or the first NaN and its position; without `dim`, or with size 1 for it
    where `keepdim` is true.
    """
    assert self.shape is not None
    if not self.shape:
        return [self, op.Constant(value=ir.tensor(np.array(0)))]
    axis = dim % len(self.shape)
    middle = op.Div(op.Sub(_size(self, axis), 1), 2)
    values, positions = _kth(_sorted(self, axis), middle, axis, keepdim)
    if self.dtype is None or not self.dtype.is_floating_point():
        return [values, positions]
    is_nan = op.Cast(op.IsNaN(self), to=int(ir.DataType.INT32))
    found = op.Cast(op.ReduceMax(is_nan, [axis], keepdims=int(keepdim)), to=int(ir.DataType.BOOL))
    values = op.Where(found, op.CastLike(float("nan"), self), values)
    return [values, op.Where(found, op.ArgMax(is_nan, axis=axis, keepdims=int(keepdim)), positions)]


@translates("aten::nanmedian")
def nanmedian(self: ir.Value) -> Any:
    """aten::nanmedian(Tensor self) -> Tensor. A scalar: the lower one of the middle elements that are not NaN."""
    flat = _flat(self)
    if _may_be_empty(self) and not _is_float(self):
        # NOTE: for a tensor without elements, PyTorch makes the integer of NaN; behind all others, no element finds it in the middle.
        nothing = self.dtype.min if self.dtype in (ir.DataType.INT32, ir.DataType.INT64) else 0
        ordered = op.Concat(_sorted(flat, 0)[0], op.CastLike([nothing], self), axis=0)
        middle = op.Max(op.Div(op.Sub(_size(flat, 0), 1), 2), op.Constant(value=ir.tensor(np.array(0))))
        return op.Gather(ordered, middle, axis=0)
    if _may_be_empty(self):
        # NOTE: for a tensor without elements, the median is NaN.
        flat = op.Concat(flat, op.CastLike([float("nan")], self), axis=0)
        flat.shape, flat.dtype = ir.Shape([None]), self.dtype
    return nanmedian_dim(flat, 0)[0]


@translates("aten::nanmedian.dim")
def nanmedian_dim(self: ir.Value, dim: int, keepdim: bool = False) -> Any:
    """aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices). As `median` without NaN."""
    assert self.shape is not None
    if not self.shape or self.dtype is None or not self.dtype.is_floating_point():
        return median_dim(self, dim, keepdim)
    axis = dim % len(self.shape)
    is_nan = op.IsNaN(self)
    count = op.ReduceSum(op.Cast(op.Not(is_nan), to=int(ir.DataType.INT64)), [axis], keepdims=1)
    # NOTE: behind all numbers; among equal elements TopK keeps the order.
    values, positions = _sorted(op.Where(is_nan, op.CastLike(float("inf"), self), self), axis)
    middle = op.Max(op.Div(op.Sub(count, 1), 2), op.Constant(value=ir.tensor(np.array(0))))
    value, position = (op.GatherElements(each, middle, axis=axis) for each in (values, positions))
    value = op.Where(op.Equal(count, 0), op.CastLike(float("nan"), self), value)
    return [value, position] if keepdim else [op.Squeeze(value, [axis]), op.Squeeze(position, [axis])]


@translates("aten::mode")
def mode(self: ir.Value, dim: int = -1, keepdim: bool = False) -> Any:
    """aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices).

    The most frequent element, the smallest of several, and its last position (INT64). Each element is compared with each other.
    """
    assert self.shape is not None
    if not self.shape:
        return [self, op.Constant(value=ir.tensor(np.array(0)))]
    axis = dim % len(self.shape)
    is_equal = op.Equal(op.Unsqueeze(self, [axis]), op.Unsqueeze(self, [axis + 1]))
    count = op.ReduceSum(op.Cast(is_equal, to=int(ir.DataType.INT64)), [axis + 1], keepdims=0)
    is_most = op.Equal(count, op.ReduceMax(count, [axis], keepdims=1))
    rank = op.ReduceSum(op.Cast(op.Less(op.Unsqueeze(self, [axis]), op.Unsqueeze(self, [axis + 1])), to=int(ir.DataType.INT64)), [axis + 1])
    candidates = op.Where(is_most, op.Squeeze(rank, [axis + 1]), op.Constant(value=ir.tensor(np.array(2**62))))
    position = op.ArgMin(candidates, axis=axis, keepdims=1, select_last_index=1)
    value = op.GatherElements(self, position, axis=axis)
    return [value, position] if keepdim else [op.Squeeze(value, [axis]), op.Squeeze(position, [axis])]


@translates("aten::kthvalue")
def kthvalue(self: ir.Value, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices).

    The k-th smallest element, counted from 1 and with NaN as the largest, and its position (INT64); without `dim`, or with size 1 for it
    where `keepdim` is true.
    """
    assert self.shape is not None
    if not self.shape:
        return [self, op.Constant(value=ir.tensor(np.array(0)))]
    axis = dim % len(self.shape)
    return list(_kth(_sorted_with_nan(self, axis), k - 1 if isinstance(k, int) else op.Sub(k, 1), axis, keepdim))


def _kth(ordered: tuple[Any, Any], position: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    at = op.Reshape(position, [1]) if isinstance(position, ir.Value) else op.Constant(value_ints=[position])
    values, positions = (op.Gather(each, at, axis=axis) for each in ordered)
    return (values, positions) if keepdim else (op.Squeeze(values, [axis]), op.Squeeze(positions, [axis]))


def _sorted(value: ir.Value, axis: int, *, descending: bool = False) -> tuple[Any, Any]:
    """The elements along an axis in order, and their positions (INT64). TopK has no order for NaN."""
    values, positions = op.TopK(value, op.Reshape(_size(value, axis), [1]), axis=axis, largest=int(descending), sorted=1)
    if value.shape is not None:
        values.shape = value.shape
    return values, positions


def _sorted_with_nan(value: ir.Value, axis: int, *, descending: bool = False) -> tuple[Any, Any]:
    """The same with NaN as the largest element."""
    if value.dtype is None or not value.dtype.is_floating_point():
        return _sorted(value, axis, descending=descending)
    # NOTE: infinity stands for NaN, and the largest finite number for infinity.
    largest = op.Constant(value=ir.tensor(value.dtype.max, dtype=value.dtype))
    key = op.Where(op.IsNaN(value), op.CastLike(float("inf"), value), op.Min(value, largest))
    key.shape = value.shape
    _, positions = _sorted(key, axis, descending=descending)
    return op.GatherElements(value, positions, axis=axis), positions


def _flat(value: ir.Value) -> Any:
    flat = op.Reshape(value, [-1])
    # NOTE: a vector is its own reshape.
    if flat is not value:
        flat.shape = ir.Shape([None])
    return flat


def _may_be_empty(value: ir.Value) -> bool:
    """Whether `value` is a tensor that may have no elements."""
    return value.dtype is not None and value.shape is not None and not all(isinstance(size, int) and size > 0 for size in value.shape)


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()


def _size(value: ir.Value, axis: int) -> Any:
    return op.Squeeze(op.Shape(value, start=axis, end=axis + 1))
