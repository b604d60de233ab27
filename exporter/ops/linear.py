"""Products of matrices."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recorder import op

from . import translates


@translates("aten::linear")
def linear(input: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> Any:
    """aten::linear(Tensor input, Tensor weight, Tensor? bias): input (..., K) @ weight (N, K)^T + bias (N), or weight (K)."""
    assert input.shape is not None
    assert weight.shape is not None
    if len(weight.shape) == 1:
        product = op.MatMul(input, weight)
    elif len(input.shape) == 2 and _is_float(input):
        return op.Gemm(input, weight, bias, transB=1)
    else:
        product = op.MatMul(input, op.Transpose(weight, perm=[1, 0]))
    return product if bias is None else op.Add(product, bias)


@translates("aten::mm", "aten::bmm")
def mm(self: ir.Value, mat2: ir.Value) -> Any:
    """aten::mm(Tensor self, Tensor mat2), of matrices; aten::bmm, of batches of them."""
    return op.MatMul(self, mat2)


@translates("aten::matmul")
def matmul(self: ir.Value, other: ir.Value) -> Any:
    """aten::matmul(Tensor self, Tensor other), with numpy's rules for one and for many dims."""
    return op.MatMul(self, other)


@translates("aten::addmm")
def addmm(self: ir.Value, mat1: ir.Value, mat2: ir.Value, beta: float = 1, alpha: float = 1) -> Any:
    """aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta, Scalar alpha): beta * self + alpha * mat1 @ mat2."""
    if _is_float(mat1):
        return op.Gemm(mat1, mat2, self, alpha=float(alpha), beta=float(beta))
    # NOTE: ONNX Runtime has no Gemm of ints.
    return op.Add(op.Mul(self, beta), op.Mul(op.MatMul(mat1, mat2), alpha))


def _is_float(value: ir.Value) -> bool:
    return value.dtype is None or value.dtype.is_floating_point()
