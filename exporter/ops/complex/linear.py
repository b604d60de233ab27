"""Sums, means and matrix products of complex tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.ops.linear import by_vector
from onnxplain.recording import op

from .representation import axes, axis, pair, parts, rank, size, to_dtype, translates_complex, without_last


@translates_complex("aten::sum.dim_IntList", "aten::sum")
def sum_(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Without the dims, or with size 1 for them where `keepdim` is true; in `dtype` if it is given.
    """
    return _reduced("ReduceSum", to_dtype(self, dtype), dim, keepdim)


@translates_complex("aten::mean.dim", "aten::mean")
def mean(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Without the dims, or with size 1 for them where `keepdim` is true; in `dtype` if it is given.
    """
    return _reduced("ReduceMean", to_dtype(self, dtype), dim, keepdim)


def _reduced(name: str, value: ir.Value, dim: Sequence[int] | None, keepdim: bool) -> Any:
    return getattr(op, name)(value, axes(value, dim), keepdims=int(keepdim)) if rank(value) else value


@translates_complex("aten::var.correction")
def variance(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor. A real tensor.

    The mean of |z - mean|**2 over the dims, or over all dims, with `correction` subtracted from the number of elements.
    """
    along = axes(self, dim)
    distance = op.Sub(self, op.ReduceMean(self, along, keepdims=1))
    squares = op.ReduceSum(op.Mul(distance, distance), [rank(self)], keepdims=0)
    total = op.ReduceSum(squares, along, keepdims=int(keepdim)) if along else squares
    sizes = op.Concat(*(op.Reshape(size(self, axis), [1]) if rank(self) else op.Constant(value_ints=[1]) for axis in along), axis=0)
    count = op.Cast(op.ReduceProd(sizes, None, keepdims=0), to=int(ir.DataType.FLOAT))
    rest = op.CastLike(op.Sub(count, float(1 if correction is None else correction)), total)
    return op.Div(total, op.Max(rest, op.CastLike(0.0, rest)))


@translates_complex("aten::std.correction")
def deviation(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, ...) -> Tensor. The root of the variance."""
    return op.Sqrt(variance(self, dim, correction, keepdim))


@translates_complex("aten::var_mean.correction")
def variance_and_mean(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, ...) -> (Tensor, Tensor). Real, and complex."""
    return variance(self, dim, correction, keepdim), _reduced("ReduceMean", self, dim, keepdim)


@translates_complex("aten::std_mean.correction")
def deviation_and_mean(self: ir.Value, dim: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Any:
    """aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, ...) -> (Tensor, Tensor). Real, and complex."""
    return deviation(self, dim, correction, keepdim), _reduced("ReduceMean", self, dim, keepdim)


@translates_complex("aten::cumsum")
def cumsum(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor. The same shape, in `dtype` if it is given."""
    value = to_dtype(self, dtype)
    return op.CumSum(value, axis(value, dim)) if rank(value) else value


@translates_complex("aten::matmul")
def matmul(self: ir.Value, other: ir.Value) -> Any:
    """aten::matmul(Tensor self, Tensor other) -> Tensor: (..., N, K) @ (..., K, M) is (..., N, M), vectors and batches as in numpy."""
    (a, b), (c, d) = (tuple(map(without_last, parts(each))) for each in (self, other))
    product = by_vector if rank(other) == 1 < rank(self) else op.MatMul
    real = op.Sub(product(a, c), product(b, d))
    imaginary = op.Add(product(a, d), product(b, c))
    return pair(op.Unsqueeze(real, [-1]), op.Unsqueeze(imaginary, [-1]))


@translates_complex("aten::mm", "aten::bmm")
def mm(self: ir.Value, mat2: ir.Value) -> Any:
    """aten::mm(Tensor self, Tensor mat2) -> Tensor: (N, K) @ (K, M) is (N, M); bmm has a batch dim in front."""
    return matmul(self, mat2)


@translates_complex("aten::mv")
def mv(self: ir.Value, vec: ir.Value) -> Any:
    """aten::mv(Tensor self, Tensor vec) -> Tensor: (N, K) @ (K) is (N)."""
    return matmul(self, vec)


@translates_complex("aten::dot")
def dot(self: ir.Value, tensor: ir.Value) -> Any:
    """aten::dot(Tensor self, Tensor tensor) -> Tensor: (K) @ (K) is a scalar."""
    return matmul(self, tensor)
