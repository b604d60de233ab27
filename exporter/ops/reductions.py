"""Sums, means and softmax along dims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast


@translates("aten::mean.dim", "aten::mean")
def mean(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Without the dims, or with size 1 for them where `keepdim` is true; in `dtype` if it is given.
    """
    return _reduced("ReduceMean", self, dim, keepdim, dtype)


@translates("aten::sum.dim_IntList", "aten::sum")
def sum_(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Without the dims, or with size 1 for them where `keepdim` is true; in `dtype` if it is given.
    """
    return _reduced("ReduceSum", self, dim, keepdim, dtype)


def _reduced(name: str, value: ir.Value, dim: Sequence[int] | None, keepdim: bool, dtype: int) -> Any:
    """No dims stand for all dims, in PyTorch as in ONNX. PyTorch computes in the dtype of the result."""
    assert value.shape is not None
    value = cast(value, dtype)
    if not value.shape:
        return value
    return getattr(op, name)(value, list(dim) if dim else None, keepdims=int(keepdim))


@translates("aten::any.dims")
def any_dims(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False) -> Any:
    """aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor. BOOL, or UINT8 of UINT8; an empty list is no dim."""
    return _truth("ReduceMax", self, dim, keepdim)


@translates("aten::all.dims")
def all_dims(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False) -> Any:
    """aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor. BOOL, or UINT8 of UINT8; an empty list is no dim."""
    return _truth("ReduceMin", self, dim, keepdim)


def _truth(name: str, value: ir.Value, dim: Sequence[int] | None, keepdim: bool) -> Any:
    truth = cast(value, int(ir.DataType.BOOL))
    if value.shape and (dim is None or dim):
        extremum = getattr(op, name)(op.Cast(truth, to=int(ir.DataType.INT32)), list(dim) if dim else None, keepdims=int(keepdim))
        truth = op.Cast(extremum, to=int(ir.DataType.BOOL))
    return cast(truth, int(ir.DataType.UINT8)) if value.dtype is ir.DataType.UINT8 else truth


@translates("aten::argmax")
def argmax(self: ir.Value, dim: int | None = None, keepdim: bool = False) -> Any:
    """aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor. INT64: along `dim`, or in the flattened tensor."""
    return _place("ArgMax", self, dim, keepdim)


@translates("aten::argmin")
def argmin(self: ir.Value, dim: int | None = None, keepdim: bool = False) -> Any:
    """aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor. INT64: along `dim`, or in the flattened tensor."""
    return _place("ArgMin", self, dim, keepdim)


def _place(name: str, value: ir.Value, dim: int | None, keepdim: bool) -> Any:
    assert value.shape is not None
    if value.shape and dim is not None:
        return getattr(op, name)(value, axis=dim, keepdims=int(keepdim))
    place = getattr(op, name)(op.Reshape(value, [-1]), axis=0, keepdims=0)
    return op.Reshape(place, [1] * len(value.shape)) if keepdim and value.shape else place


@translates("aten::var.correction")
def variance(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor. Of floats."""
    return cast(_variance(self, dim, correction, keepdim)[0], self.dtype)


@translates("aten::std.correction")
def deviation(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor. Of floats."""
    return cast(op.Sqrt(_variance(self, dim, correction, keepdim)[0]), self.dtype)


@translates("aten::var_mean.correction")
def variance_and_mean(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, ...) -> (Tensor, Tensor). Of floats."""
    return [cast(each, self.dtype) for each in _variance(self, dim, correction, keepdim)]


@translates("aten::std_mean.correction")
def deviation_and_mean(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, ...) -> (Tensor, Tensor). Of floats."""
    found, mean = _variance(self, dim, correction, keepdim)
    return cast(op.Sqrt(found), self.dtype), cast(mean, self.dtype)


def _variance(value: ir.Value, dims: Sequence[int] | None, correction: float | None, keepdim: bool) -> tuple[Any, Any]:
    """The variance over dims, or over all of them, and the mean; in single precision if `value` has less."""
    assert value.shape is not None
    correction, rank = 1 if correction is None else correction, len(value.shape)
    value = cast(value, ir.DataType.FLOAT) if value.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16) else value
    if not rank:
        return op.Div(op.Sub(value, value), op.CastLike(max(0.0, 1.0 - correction), value)), value
    along = [dim % rank for dim in dims] if dims else list(range(rank))
    mean = op.ReduceMean(value, along, keepdims=1)
    distance = op.Sub(value, mean)
    found = op.ReduceMean(op.Mul(distance, distance), along, keepdims=int(keepdim))
    if correction:
        count = op.CastLike(op.ReduceProd(op.Gather(op.Shape(value), along, axis=0), None, keepdims=0), value)
        rest = op.Max(op.Sub(count, op.CastLike(float(correction), value)), op.CastLike(0.0, value))
        found = op.Div(op.Mul(found, count), rest)
    return found, mean if keepdim else op.Squeeze(mean, along)


@translates("aten::linalg_vector_norm")
def vector_norm(self: ir.Value, ord: float = 2, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Of floats. `ord` is a power, 0 for the number of elements that are not 0, or an infinity for an extremum.
    """
    value = cast(self, dtype)
    if ord == 0:
        value = op.CastLike(op.Cast(value, to=int(ir.DataType.BOOL)), value)
    elif ord not in (1, 2):
        value = op.Abs(value) if math.isinf(ord) else op.Pow(op.Abs(value), float(ord))
    name = {0: "ReduceSum", 1: "ReduceL1", 2: "ReduceL2", math.inf: "ReduceMax", -math.inf: "ReduceMin"}.get(ord, "ReduceSum")
    if self.shape or ord in (1, 2):
        value = getattr(op, name)(value, list(dim) if dim and self.shape else None, keepdims=int(keepdim))
    return value if name != "ReduceSum" or ord == 0 else op.Pow(value, 1 / ord)


@translates("aten::softmax.int", "aten::special_softmax")
def softmax(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor. In `dtype` if it is given."""
    return _along(op.Softmax, self, dim, dtype)


@translates("aten::log_softmax.int", "aten::special_log_softmax")
def log_softmax(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor. In `dtype` if it is given."""
    return _along(op.LogSoftmax, self, dim, dtype)


@translates("aten::_softmax")
def core_softmax(self: ir.Value, dim: int, half_to_float: bool) -> Any:
    """aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor. FLOAT if `half_to_float`."""
    return _along(op.Softmax, self, dim, int(ir.DataType.FLOAT) if half_to_float else -1)


@translates("aten::_log_softmax")
def core_log_softmax(self: ir.Value, dim: int, half_to_float: bool) -> Any:
    """aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor. FLOAT if `half_to_float`."""
    return _along(op.LogSoftmax, self, dim, int(ir.DataType.FLOAT) if half_to_float else -1)


def _along(operator: Any, value: ir.Value, dim: int, dtype: int) -> Any:
    """PyTorch lets a scalar have one dim, and computes in the dtype of the result."""
    assert value.shape is not None
    scalar = not value.shape
    value = cast(value, dtype)
    return op.Squeeze(operator(op.Unsqueeze(value, [0]), axis=0)) if scalar else operator(value, axis=dim)
