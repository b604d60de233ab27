"""Products of matrices."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates


@translates("aten::linear")
def linear(input: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> Any:
    """aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor: input (..., K) @ weight (N, K)^T + bias (N) is (..., N).

    A weight (K) gives (...).
    """
    assert input.shape is not None
    assert weight.shape is not None
    if len(weight.shape) == 1:
        product = matmul(input, weight)
    elif len(input.shape) == 2 and _is_float(input):
        return op.Gemm(input, weight, bias, transB=1)
    else:
        product = op.MatMul(input, op.Transpose(weight, perm=[1, 0]))
    return product if bias is None else op.Add(product, bias)


@translates("aten::mm", "aten::bmm")
def mm(self: ir.Value, mat2: ir.Value) -> Any:
    """aten::mm(Tensor self, Tensor mat2) -> Tensor: (N, K) @ (K, M) is (N, M); aten::bmm has a batch dim in front."""
    return op.MatMul(self, mat2)


@translates("aten::matmul")
def matmul(self: ir.Value, other: ir.Value) -> Any:
    """aten::matmul(Tensor self, Tensor other) -> Tensor: (..., N, K) @ (..., K, M) is (..., N, M), vectors and batches as in numpy."""
    assert self.shape is not None
    assert other.shape is not None
    return by_vector(self, other) if len(other.shape) == 1 < len(self.shape) else op.MatMul(self, other)


@translates("aten::mv")
def by_vector(self: ir.Value, vec: ir.Value) -> Any:
    """aten::mv(Tensor self, Tensor vec) -> Tensor: (N, K) @ (K) is (N); with any dims in front."""
    # NOTE: of a transposed matrix and a vector, ONNX Runtime 1.31 makes a FusedMatMul that forgets to transpose.
    return op.Squeeze(op.MatMul(self, op.Unsqueeze(vec, [1])), [-1])


@translates("aten::addmm")
def addmm(self: ir.Value, mat1: ir.Value, mat2: ir.Value, beta: Any = 1, alpha: Any = 1) -> Any:
    """aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor: beta * self + alpha * mat1 @ mat2.

    `self` broadcasts to (N, M).
    """
    if isinstance(alpha, ir.Value):
        mat1, alpha = op.Mul(mat1, op.CastLike(alpha, mat1)), 1
    # NOTE: ONNX Runtime's Gemm of matrices without elements does not scale `self`.
    if isinstance(beta, ir.Value) or (beta != 1 and not _has_columns(mat1)):
        self, beta = op.Mul(self, op.CastLike(beta, self)), 1
    if _is_float(mat1):
        return op.Gemm(mat1, mat2, self, alpha=float(alpha), beta=float(beta))
    # NOTE: ONNX Runtime has no Gemm of ints.
    return op.Add(op.Mul(self, beta), op.Mul(op.MatMul(mat1, mat2), alpha))


@translates("aten::addmv")
def addmv(self: ir.Value, mat: ir.Value, vec: ir.Value, beta: Any = 1, alpha: Any = 1) -> Any:
    """aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor: beta * self + alpha * mat @ vec.

    `self` broadcasts to (N).
    """
    return op.Add(op.Mul(self, op.CastLike(beta, self)), op.Mul(by_vector(mat, vec), op.CastLike(alpha, mat)))


def _has_columns(matrix: ir.Value) -> bool:
    size = matrix.shape[-1] if matrix.shape is not None else None
    return isinstance(size, int) and size > 0


def _is_float(value: ir.Value) -> bool:
    return value.dtype is None or value.dtype.is_floating_point()


@translates("aten::cdist", "aten::_cdist_forward")
def cdist(x1: ir.Value, x2: ir.Value, p: float = 2.0, compute_mode: int | None = None) -> Any:
    """aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor: x1 (..., P, M) and x2 (..., R, M) give (..., P, R).

    The p-norm of the difference of each row of `x1` and each row of `x2`. `compute_mode` selects one of several equal algorithms.
    """
    del compute_mode
    difference = op.Sub(op.Unsqueeze(x1, [-2]), op.Unsqueeze(x2, [-3]))
    if p == 1:
        return op.ReduceL1(difference, [-1], keepdims=0)
    if p == 2:
        return op.ReduceL2(difference, [-1], keepdims=0)
    if p == math.inf:
        return op.ReduceMax(op.Abs(difference), [-1], keepdims=0)
    if p == 0:
        zero = op.CastLike(0.0, difference)
        return op.ReduceSum(op.CastLike(op.Not(op.Equal(difference, zero)), difference), [-1], keepdims=0)
    return op.Pow(op.ReduceSum(op.Pow(op.Abs(difference), p), [-1], keepdims=0), 1 / p)


@translates("aten::_scaled_mm")
def scaled_mm(
    self: ir.Value,
    mat2: ir.Value,
    scale_a: ir.Value,
    scale_b: ir.Value,
    bias: ir.Value | None = None,
    scale_result: ir.Value | None = None,
    out_dtype: int = -1,
    use_fast_accum: bool = False,
) -> Any:
    """aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, ...) -> Tensor: (N, K) @ (K, M).

    (N, M) in `out_dtype` or the dtype of `self`. The matrices are 8-bit floats, multiplied in float32. A scale is one number, or one for
    each row of `self` (N, 1) and each column of `mat2` (1, M).

    Raises:
        ValueError: The result has an 8-bit dtype and `scale_result` is given.
    """
    del use_fast_accum
    single = int(ir.DataType.FLOAT)
    product = op.Mul(op.Mul(op.MatMul(op.Cast(self, to=single), op.Cast(mat2, to=single)), scale_a), scale_b)
    if bias is not None:
        product = op.Add(product, op.Cast(bias, to=single))
    dtype = ir.DataType(int(self.dtype or single) if out_dtype == -1 else out_dtype)
    if scale_result is not None and dtype.itemsize == 1:
        # NOTE: other results ignore it. The CPU divides by it (seen in torch 2.13), cuBLAS multiplies by it.
        raise ValueError("scale_result has not the same meaning on all devices")
    return op.Cast(product, to=int(dtype))


@translates("transformers::grouped_mm_fallback", "aten::_grouped_mm")
def grouped_mm(
    self: ir.Value, mat2: ir.Value, offs: ir.Value | None = None, bias: ir.Value | None = None, out_dtype: int | None = None
) -> Any:
    """transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor: (S, K) @ (G, K, N) is (S, N).

    The layer of a mixture of experts: group `g` of the rows, which ends before row `offs[g]`, is multiplied by matrix `g`. Rows after the
    last group give 0.

    aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor is the same.

    Raises:
        ValueError: The arguments have other ranks, the number of groups is dynamic, or there is a bias.
    """
    assert self.shape is not None
    assert mat2.shape is not None
    groups = mat2.shape[0]
    if offs is None or bias is not None or (len(self.shape), len(mat2.shape)) != (2, 3) or not isinstance(groups, int):
        raise ValueError("a grouped product needs groups of rows, one matrix for each, and no bias")
    ends = op.Concat(op.Cast(offs, to=int(ir.DataType.INT64)), op.Shape(self, start=0, end=1), axis=0)
    sizes = op.Sub(ends, op.Concat([0], op.Slice(ends, [0], [groups], [0]), axis=0))
    # NOTE: runtimes fold the parts of a weight when they load the model; a loop over experts would cut them out in every run.
    *rows, rest = emit("Split", [self, sizes], {"axis": 0}, outputs=groups + 1)
    matrices = emit("Split", [mat2, [1] * groups], {"axis": 0}, outputs=groups) if groups > 1 else [mat2]
    products = [op.MatMul(each, op.Squeeze(matrix, [0])) for each, matrix in zip(rows, matrices, strict=True)]
    zeros = op.Expand(op.CastLike(0.0, self), op.Concat(op.Shape(rest, start=0, end=1), op.Shape(mat2, start=2, end=3), axis=0))
    product = op.Concat(*products, zeros, axis=0)
    return product if out_dtype is None else op.Cast(product, to=out_dtype)


@translates("aten::_sparse_mm")
def sparse_mm(sparse: ir.Value, dense: ir.Value) -> Any:
    """aten::_sparse_mm(Tensor sparse, Tensor dense) -> Tensor: (N, K) @ (K, M) is (N, M)."""
    return op.MatMul(sparse, dense)


@translates("aten::_sparse_addmm")
def sparse_addmm(self: ir.Value, mat1: ir.Value, mat2: ir.Value, beta: float = 1, alpha: float = 1) -> Any:
    """aten::_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor. As `addmm`, `mat1` sparse."""
    product = op.MatMul(mat1, mat2)
    product = product if alpha == 1 else op.Mul(product, op.CastLike(alpha, product))
    return product if beta == 0 else op.Add(self if beta == 1 else op.Mul(self, op.CastLike(beta, self)), product)


@translates("aten::cross")
def cross(self: ir.Value, other: ir.Value, dim: int | None = None) -> Any:
    """aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor.

    `self` and `other` are of shapes that broadcast, and 3 in `dim`; without it, that is the first dim of `self` of size 3. The result has
    the broadcast shape.
    """
    assert self.shape is not None
    if dim is None:
        dim = list(self.shape).index(3)
    # NOTE: counted from the end, since one may have fewer dims.
    dim -= len(self.shape) if dim >= 0 else 0
    first, second = (op.Split(each, axis=dim, num_outputs=3) for each in (self, other))
    parts = [op.Sub(op.Mul(first[i - 2], second[i - 1]), op.Mul(first[i - 1], second[i - 2])) for i in range(3)]
    return op.Concat(*parts, axis=dim)
