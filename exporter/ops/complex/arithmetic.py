"""Arithmetic of complex tensors. Two operands broadcast to the shape of the result."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from .representation import number, operands, pair, parts, translates_complex


@translates_complex("aten::add.Tensor", "aten::add.Scalar")
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


@translates_complex("aten::div.Tensor", "aten::div.Scalar")
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


@translates_complex("aten::neg", "aten::_neg_view", "aten::_neg_view_copy")
def neg(self: ir.Value) -> Any:
    """aten::neg(Tensor self) -> Tensor."""
    return op.Neg(self)


@translates_complex("aten::conj", "aten::_conj", "aten::_conj_copy", "aten::_conj_physical", "aten::conj_physical")
def conj(self: ir.Value) -> Any:
    """aten::conj(Tensor self) -> Tensor."""
    return op.Mul(self, number(1 - 1j, self))
