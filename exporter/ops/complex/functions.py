"""Absolute values, angles, exponentials, logarithms, roots, powers and trigonometric functions of complex tensors."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.ops.signs import atan2, signbit
from onnxplain.recording import op

from .arithmetic import add, mul, reciprocal, sub
from .representation import equal, number, pair, parts, real, translates_complex, without_last, zero


@translates_complex("aten::abs")
def absolute(self: ir.Value) -> Any:
    """aten::abs(Tensor self) -> Tensor. A real tensor of the same shape."""
    return without_last(_absolute(self))


def _absolute(value: ir.Value) -> Any:
    # NOTE: of parts divided by the larger one, so that the squares do not overflow.
    scale = op.ReduceMax(op.Abs(value), [-1], keepdims=1)
    is_plain = op.And(op.Greater(scale, zero(scale)), op.Not(op.IsInf(scale)))
    scaled = op.Div(value, scale)
    size = op.Mul(op.Sqrt(op.ReduceSumSquare(scaled, [-1], keepdims=1)), scale)
    return op.Where(is_plain, size, scale)


@translates_complex("aten::angle")
def angle(self: ir.Value) -> Any:
    """aten::angle(Tensor self) -> Tensor. A real tensor of the same shape, in [-pi, pi]."""
    return without_last(_angle(self))


def _angle(value: ir.Value) -> Any:
    x, y = parts(value)
    return atan2(y, x)


@translates_complex("aten::sgn")
def sgn(self: ir.Value) -> Any:
    """aten::sgn(Tensor self) -> Tensor: z / |z|, and 0 for 0."""
    size = _absolute(self)
    return op.Div(self, op.Where(op.Equal(size, zero(size)), op.CastLike(1.0, size), size))


@translates_complex("aten::exp")
def exp(self: ir.Value) -> Any:
    """aten::exp(Tensor self) -> Tensor."""
    a, b = parts(self)
    return op.Mul(op.Exp(a), _unit(b))


def _unit(angle: Any) -> Any:
    """The complex number of absolute value 1 at an angle."""
    return pair(op.Cos(angle), op.Sin(angle))


@translates_complex("aten::exp2")
def exp2(self: ir.Value) -> Any:
    """aten::exp2(Tensor self) -> Tensor."""
    return exp(op.Mul(self, math.log(2)))


@translates_complex("aten::expm1")
def expm1(self: ir.Value) -> Any:
    """aten::expm1(Tensor self) -> Tensor."""
    return sub(exp(self), 1)


@translates_complex("aten::log")
def log(self: ir.Value) -> Any:
    """aten::log(Tensor self) -> Tensor."""
    return pair(op.Log(_absolute(self)), _angle(self))


@translates_complex("aten::log1p")
def log1p(self: ir.Value) -> Any:
    """aten::log1p(Tensor self) -> Tensor."""
    return log(add(self, 1))


@translates_complex("aten::log2")
def log2(self: ir.Value) -> Any:
    """aten::log2(Tensor self) -> Tensor."""
    return op.Mul(log(self), 1 / math.log(2))


@translates_complex("aten::log10")
def log10(self: ir.Value) -> Any:
    """aten::log10(Tensor self) -> Tensor."""
    return op.Mul(log(self), 1 / math.log(10))


@translates_complex("aten::sqrt")
def sqrt(self: ir.Value) -> Any:
    """aten::sqrt(Tensor self) -> Tensor: the root whose real part is not negative.

    The larger part of the root is computed first, and the smaller part as a quotient by it.
    """
    a, b = parts(self)
    nothing = zero(a)
    larger = op.Sqrt(op.Mul(op.Add(_absolute(self), op.Abs(a)), 0.5))
    smaller = op.Div(op.Mul(op.Abs(b), 0.5), op.Where(op.Equal(larger, nothing), op.CastLike(1.0, larger), larger))
    right = op.Not(op.Less(a, nothing))
    imaginary = op.Where(right, smaller, larger)
    return pair(op.Where(right, larger, smaller), op.Where(signbit(b), op.Neg(imaginary), imaginary))


@translates_complex("aten::rsqrt")
def rsqrt(self: ir.Value) -> Any:
    """aten::rsqrt(Tensor self) -> Tensor."""
    return reciprocal(sqrt(self))


@translates_complex("aten::sigmoid")
def sigmoid(self: ir.Value) -> Any:
    """aten::sigmoid(Tensor self) -> Tensor."""
    return reciprocal(add(exp(op.Neg(self)), 1))


def _hyperbolic(part: Any) -> tuple[Any, Any]:
    """The hyperbolic cosine and sine of a real tensor."""
    grown, shrunk = op.Exp(part), op.Exp(op.Neg(part))
    return op.Mul(op.Add(grown, shrunk), 0.5), op.Mul(op.Sub(grown, shrunk), 0.5)


@translates_complex("aten::sin")
def sin(self: ir.Value) -> Any:
    """aten::sin(Tensor self) -> Tensor: sin a cosh b + i cos a sinh b."""
    a, b = parts(self)
    cosh_b, sinh_b = _hyperbolic(b)
    return pair(op.Mul(op.Sin(a), cosh_b), op.Mul(op.Cos(a), sinh_b))


@translates_complex("aten::cos")
def cos(self: ir.Value) -> Any:
    """aten::cos(Tensor self) -> Tensor: cos a cosh b - i sin a sinh b."""
    a, b = parts(self)
    cosh_b, sinh_b = _hyperbolic(b)
    return pair(op.Mul(op.Cos(a), cosh_b), op.Neg(op.Mul(op.Sin(a), sinh_b)))


@translates_complex("aten::sinh")
def sinh(self: ir.Value) -> Any:
    """aten::sinh(Tensor self) -> Tensor: sinh a cos b + i cosh a sin b."""
    a, b = parts(self)
    cosh_a, sinh_a = _hyperbolic(a)
    return pair(op.Mul(sinh_a, op.Cos(b)), op.Mul(cosh_a, op.Sin(b)))


@translates_complex("aten::cosh")
def cosh(self: ir.Value) -> Any:
    """aten::cosh(Tensor self) -> Tensor: cosh a cos b + i sinh a sin b."""
    a, b = parts(self)
    cosh_a, sinh_a = _hyperbolic(a)
    return pair(op.Mul(cosh_a, op.Cos(b)), op.Mul(sinh_a, op.Sin(b)))


@translates_complex("aten::tanh")
def tanh(self: ir.Value) -> Any:
    """aten::tanh(Tensor self) -> Tensor.

    With t = tanh a it is (t (1 + tan(b)^2) + i tan(b) (1 - t^2)) / (1 + t^2 tan(b)^2), expanded by cos(b)^2.
    """
    a, b = parts(self)
    t, s, c = op.Tanh(a), op.Sin(b), op.Cos(b)
    denominator = op.Add(op.Mul(c, c), op.Mul(op.Mul(t, t), op.Mul(s, s)))
    return op.Div(pair(t, op.Mul(op.Mul(s, c), op.Sub(op.CastLike(1.0, t), op.Mul(t, t)))), denominator)


@translates_complex("aten::tan")
def tan(self: ir.Value) -> Any:
    """aten::tan(Tensor self) -> Tensor: -i tanh(i z)."""
    a, b = parts(tanh(mul(self, 1j)))
    return pair(b, op.Neg(a))


@translates_complex("aten::pow.Tensor_Scalar")
def power_scalar(self: ir.Value, exponent: complex) -> Any:
    """aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor. Small integer exponents are products."""
    if isinstance(exponent, complex):
        return power(self, number(exponent, self))
    if float(exponent).is_integer() and abs(exponent) <= _PRODUCTS:
        result = _product(self, abs(int(exponent)))
        return reciprocal(result) if exponent < 0 else result
    return op.Mul(op.Pow(_absolute(self), float(exponent)), _unit(op.Mul(_angle(self), float(exponent))))


_PRODUCTS = 64
"""The largest exponent that is computed by products."""


def _product(value: ir.Value, count: int) -> Any:
    if count == 0:
        return op.Expand(number(1, value), op.Shape(value))
    half = value if count == 1 else _product(value, count // 2)
    whole = half if count == 1 else mul(half, half)
    return mul(whole, value) if count > 1 and count % 2 else whole


@translates_complex("aten::pow.Tensor_Tensor", "aten::pow.Scalar")
def power(self: Any, exponent: ir.Value) -> Any:
    """aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor: exp(exponent * log(self)), of the shape that both broadcast to.

    A power of 0 is 0 if the real part of the exponent is positive, and NaN otherwise.
    """
    base = number(self, exponent)
    result = exp(mul(exponent, log(base)))
    nothing = number(0, exponent)
    is_positive = op.Greater(real(exponent), zero(exponent))
    return op.Where(op.Unsqueeze(op.And(equal(base, nothing), is_positive), [-1]), nothing, result)


@translates_complex("aten::asinh")
def asinh(self: ir.Value) -> Any:
    """aten::asinh(Tensor self) -> Tensor."""
    return _asinh(self)


def _asinh(value: Any) -> Any:
    # NOTE: the function is odd, and the sum cancels out where the real part is negative.
    a, _ = parts(value)
    side = op.Where(signbit(a), op.CastLike(-1.0, a), op.CastLike(1.0, a))
    value = op.Mul(value, side)
    return op.Mul(log(add(value, sqrt(add(mul(value, value), 1)))), side)


def _turned(value: Any) -> Any:
    """The product i * z."""
    a, b = parts(value)
    return pair(op.Neg(b), a)


def _turned_back(value: Any) -> Any:
    """The product -i * z."""
    a, b = parts(value)
    return pair(b, op.Neg(a))


@translates_complex("aten::asin")
def asin(self: ir.Value) -> Any:
    """aten::asin(Tensor self) -> Tensor."""
    return _turned_back(_asinh(_turned(self)))


@translates_complex("aten::acos")
def acos(self: ir.Value) -> Any:
    """aten::acos(Tensor self) -> Tensor: pi / 2 - asin(z)."""
    return sub(number(math.pi / 2, self), asin(self))


@translates_complex("aten::acosh")
def acosh(self: ir.Value) -> Any:
    """aten::acosh(Tensor self) -> Tensor."""
    return log(add(self, mul(sqrt(add(self, 1)), sqrt(sub(self, 1)))))


@translates_complex("aten::atanh")
def atanh(self: ir.Value) -> Any:
    """aten::atanh(Tensor self) -> Tensor."""
    return op.Mul(sub(log(add(self, 1)), log(sub(number(1, self), self))), 0.5)


@translates_complex("aten::atan")
def atan(self: ir.Value) -> Any:
    """aten::atan(Tensor self) -> Tensor."""
    return _turned_back(atanh(_turned(self)))
