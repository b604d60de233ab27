"""Signs and angles of real numbers, where -0 and NaN count: sign, signbit, copysign, heaviside, angle, atan2."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates


@translates("aten::sign", "aten::sgn")
def sign(self: ir.Value) -> Any:
    """aten::sign(Tensor self) -> Tensor: -1, 0 or 1; 0 for NaN."""
    if self.dtype is None or not self.dtype.is_floating_point():
        return op.Sign(self)
    return op.Where(op.IsNaN(self), op.CastLike(0.0, self), op.Sign(self))


@translates("aten::signbit")
def signbit(self: ir.Value) -> Any:
    """aten::signbit(Tensor self) -> Tensor. BOOL: whether a number is negative, -0 included."""
    if self.dtype is ir.DataType.BOOL:
        return op.Xor(self, self)
    below = op.Less(self, op.CastLike(0, self))
    if self.dtype is None or not self.dtype.is_floating_point():
        return below
    # NOTE: 1 / -0 is minus infinity.
    return op.Or(below, op.Less(op.Reciprocal(self), op.CastLike(0, self)))


@translates("aten::copysign.Tensor", "aten::copysign.Scalar")
def copysign(self: ir.Value, other: Any) -> Any:
    """aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor: the size of `self` with the sign of `other`."""
    size = op.Abs(self)
    if not isinstance(other, ir.Value):
        return op.Neg(size) if math.copysign(1.0, other) < 0 else size
    return op.Where(signbit(other), op.Neg(size), size)


@translates("aten::heaviside")
def heaviside(self: ir.Value, values: ir.Value) -> Any:
    """aten::heaviside(Tensor self, Tensor values) -> Tensor: 1 above 0, `values` at 0, and 0 below it and for NaN."""
    nothing = op.CastLike(0, self)
    return op.Where(op.Equal(self, nothing), values, op.CastLike(op.Greater(self, nothing), values))


@translates("aten::angle")
def angle(self: ir.Value) -> Any:
    """aten::angle(Tensor self) -> Tensor: pi below 0, otherwise 0, and NaN for NaN."""
    plain = op.Where(op.Less(self, op.CastLike(0, self)), op.CastLike(math.pi, self), op.CastLike(0.0, self))
    return op.Where(op.IsNaN(self), self, plain)


@translates("aten::atan2")
def atan2(self: ir.Value, other: ir.Value) -> Any:
    """aten::atan2(Tensor self, Tensor other) -> Tensor: the angle of the point (other, self), in [-pi, pi]."""
    y, x = op.Abs(self), op.Abs(other)
    # NOTE: Div makes NaN of two infinities, whose angle is that of equal numbers, and of two zeros, whose angle is 0.
    steep = _arc_tangent(op.Where(op.Equal(y, x), op.Sign(x), op.Div(y, x)))
    above = op.Where(signbit(other), op.Sub(math.pi, steep), steep)
    return op.Where(signbit(self), op.Neg(above), above)


def _arc_tangent(value: Any) -> Any:
    if value.dtype is not ir.DataType.DOUBLE:
        return op.Atan(value)
    # NOTE: ONNX Runtime has it in single precision only. A step of Newton's method makes the most of it.
    rough = op.Cast(op.Atan(op.Cast(value, to=int(ir.DataType.FLOAT))), to=int(ir.DataType.DOUBLE))
    sine, cosine = op.Sin(rough), op.Cos(rough)
    better = op.Add(rough, op.Div(op.Sub(op.Mul(value, cosine), sine), op.Add(cosine, op.Mul(value, sine))))
    return op.Where(op.IsInf(value), rough, better)
