"""Arithmetic of complex tensors. Two operands broadcast to the shape of the result."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.ops import translates
from onnxplain.ops.loops import scan
from onnxplain.recording import op

from .representation import axis, number, operands, pair, parts, rank, translates_complex


@translates_complex("aten::add.Tensor", "aten::add.Scalar", "prims::add")
def add(self: Any, other: Any, alpha: complex = 1) -> Any:
    """aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: self + alpha * other."""
    self, other = operands(self, other)
    return op.Add(self, other if alpha == 1 else mul(other, alpha))


@translates_complex("aten::sub.Tensor", "aten::sub.Scalar")
def sub(self: Any, other: Any, alpha: complex = 1) -> Any:
    """aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: self - alpha * other."""
    self, other = operands(self, other)
    return op.Sub(self, other if alpha == 1 else mul(other, alpha))


@translates_complex("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(self: Any, other: Any, alpha: complex = 1) -> Any:
    """aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: other - alpha * self."""
    return sub(number(other, self), self, alpha)


@translates_complex("aten::mul.Tensor", "aten::mul.Scalar")
def mul(self: Any, other: Any) -> Any:
    """aten::mul.Tensor(Tensor self, Tensor other) -> Tensor."""
    if isinstance(other, int | float):
        return op.Mul(self, other)
    (a, b), (c, d) = map(parts, operands(self, other))
    return pair(op.Sub(op.Mul(a, c), op.Mul(b, d)), op.Add(op.Mul(a, d), op.Mul(b, c)))


@translates_complex("aten::square")
def square(self: ir.Value) -> Any:
    """aten::square(Tensor self) -> Tensor."""
    return mul(self, self)


@translates_complex("aten::div.Tensor", "aten::div.Scalar", "prims::div")
def div(self: Any, other: Any) -> Any:
    """aten::div.Tensor(Tensor self, Tensor other) -> Tensor."""
    if isinstance(other, int | float):
        return op.Div(self, other)
    self, other = operands(self, other)
    scale, inverse = _inverse(other)
    return _unless_zero(scale, mul(self, inverse), self)


@translates_complex("aten::reciprocal")
def reciprocal(self: ir.Value) -> Any:
    """aten::reciprocal(Tensor self) -> Tensor."""
    return _unless_zero(*_inverse(self), number(1, self))


def _inverse(value: ir.Value) -> tuple[Any, Any]:
    """The larger part of z, and conj(z) / |z|^2, of z divided by that part so that the square does not overflow."""
    scale = op.ReduceMax(op.Abs(value), [-1], keepdims=1)
    scaled = op.Div(value, scale)
    return scale, op.Div(op.Div(conj(scaled), scale), op.ReduceSumSquare(scaled, [-1], keepdims=1))


def _unless_zero(scale: Any, quotient: Any, dividend: Any) -> Any:
    """The quotient; where the divisor is 0, the parts of the dividend divided by 0, which are infinities and NaN."""
    return op.Where(op.Equal(scale, op.CastLike(0.0, scale)), op.Div(dividend, scale), quotient)


@translates("aten::_neg_view", "aten::_neg_view_copy", is_complex=None)
@translates_complex("aten::neg")
def neg(self: ir.Value) -> Any:
    """aten::neg(Tensor self) -> Tensor."""
    return op.Neg(self)


@translates_complex("aten::conj", "aten::_conj", "aten::_conj_copy", "aten::_conj_physical", "aten::conj_physical")
def conj(self: ir.Value) -> Any:
    """aten::conj(Tensor self) -> Tensor."""
    return op.Mul(self, number(1 - 1j, self))


@translates_complex("aten::cumprod")
def cumprod(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor."""
    del dtype
    if not rank(self):
        return self

    def step(total: Any, each: Any) -> tuple[list[Any], list[Any]]:
        total = mul(total, each)
        return [total], [total]

    along = axis(self, dim)
    first = op.Gather(self, 0, axis=along)
    start = op.Expand(number(1, self), op.Shape(first))
    start.shape = ir.Shape([None] * rank(self))
    return scan(step, [start], [self], along)[-1]


@translates_complex("aten::prod", "aten::prod.dim_int")
def prod(self: ir.Value, dim: int | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor. Over `dim`, or all elements."""
    del dtype
    if not rank(self):
        return self
    value, along = self, axis(self, dim or 0)
    if dim is None:
        value = op.Reshape(self, [-1, 2])
        # NOTE: a vector is its own reshape.
        if value is not self:
            value.shape = ir.Shape([None, 2])

    def step(total: Any, each: Any) -> tuple[list[Any], list[Any]]:
        return [mul(total, each)], []

    if self.shape is not None and 0 in self.shape:
        # NOTE: ONNX Runtime has no loop over an empty dim.
        return op.Expand(number(1, self), op.Shape(op.ReduceSum(value, [along], keepdims=int(keepdim))))
    start = op.Expand(number(1, self), op.Shape(op.Gather(value, 0, axis=along)))
    start.shape = ir.Shape([None] * rank(value))
    (total,) = scan(step, [start], [value], along)
    return op.Unsqueeze(total, [along]) if keepdim else total
