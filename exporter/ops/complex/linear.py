"""Sums, means and matrix products of complex tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.ops.linear import by_vector
from onnxplain.recording import op

from .representation import axes, axis, pair, parts, rank, to_dtype, translates_complex, without_last


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
