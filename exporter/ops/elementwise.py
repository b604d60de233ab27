"""Elementwise arithmetic and comparisons. Operands broadcast to the shape of the result. The pass `promote` has cast them to one dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .loops import scan
from .symbolic import double

_BOOL = ir.DataType.BOOL

_UNARY = ("abs", "cos", "exp", "log", "neg", "reciprocal", "sigmoid", "sin", "sqrt", "tanh")
"""Operators of one tensor that ONNX has under the same name, with a capital letter."""


def _unary(name: str) -> Callable[[ir.Value], Any]:
    def translation(self: ir.Value) -> Any:
        return getattr(op, name.capitalize())(self)

    translation.__name__ = translation.__qualname__ = name
    translation.__doc__ = f"aten::{name}(Tensor self) -> Tensor."
    return translation


for _name in _UNARY:
    translates(f"aten::{_name}")(_unary(_name))


def _rounding(name: str) -> Callable[[ir.Value], Any]:
    def translation(self: ir.Value) -> Any:
        return getattr(op, name.capitalize())(self) if self.dtype is None or self.dtype.is_floating_point() else op.Identity(self)

    translation.__name__ = translation.__qualname__ = name
    translation.__doc__ = f"aten::{name}(Tensor self) -> Tensor. Ints stay as they are."
    return translation


for _name in ("ceil", "floor", "round"):
    translates(f"aten::{_name}")(_rounding(_name))


@translates("aten::trunc", "aten::fix")
def trunc(self: ir.Value) -> Any:
    """aten::trunc(Tensor self) -> Tensor: rounded toward zero. Ints stay as they are."""
    if self.dtype is not None and not self.dtype.is_floating_point():
        return op.Identity(self)
    return op.Mul(op.Floor(op.Abs(self)), op.Sign(self))


@translates("aten::log_sigmoid")
def log_sigmoid(self: ir.Value) -> Any:
    """aten::log_sigmoid(Tensor self) -> Tensor: -softplus(-x), which no x makes infinite."""
    return op.Neg(_softplus(op.Neg(self)))


@translates("aten::logaddexp")
def logaddexp(self: ir.Value, other: ir.Value) -> Any:
    """aten::logaddexp(Tensor self, Tensor other) -> Tensor: log(exp(self) + exp(other)), from the larger one and the distance."""
    return _log_of_sum(self, other, math.e)


@translates("aten::logaddexp2")
def logaddexp2(self: ir.Value, other: ir.Value) -> Any:
    """aten::logaddexp2(Tensor self, Tensor other) -> Tensor: the same with powers of 2."""
    return _log_of_sum(self, other, 2.0)


def _softplus(value: ir.Value) -> Any:
    """log(1 + exp(x))."""
    if value.dtype is ir.DataType.FLOAT:
        return op.Softplus(value)
    # NOTE: ONNX Runtime has a kernel for single precision only.
    return op.Add(op.Relu(value), op.Log(op.Add(op.Exp(op.Neg(op.Abs(value))), 1)))


def _log_of_sum(one: ir.Value, other: ir.Value, base: float) -> Any:
    unit = math.log(base)
    more = _softplus(op.Mul(op.Neg(op.Abs(op.Sub(one, other))), unit))
    # NOTE: two equal infinities have no distance.
    return op.Where(op.Equal(one, other), op.Add(one, math.log(2) / unit), op.Add(op.Max(one, other), op.Div(more, unit)))


@translates("aten::sinc")
def sinc(self: ir.Value) -> Any:
    """aten::sinc(Tensor self) -> Tensor: sin(pi * x) / (pi * x), and 1 for 0."""
    angle = op.Mul(self, math.pi)
    return op.Where(op.Equal(self, op.CastLike(0.0, self)), op.CastLike(1.0, self), op.Div(op.Sin(angle), angle))


@translates("aten::gcd")
def gcd(self: ir.Value, other: ir.Value) -> Any:
    """aten::gcd(Tensor self, Tensor other) -> Tensor: the greatest common divisor of ints, by Euclid's algorithm."""
    return _gcd(self, other)


@translates("aten::lcm")
def lcm(self: ir.Value, other: ir.Value) -> Any:
    """aten::lcm(Tensor self, Tensor other) -> Tensor: the least common multiple of ints; 0 where one of them is 0."""
    divisor = _gcd(self, other)
    return op.Abs(op.Mul(op.Div(self, op.Where(op.Equal(divisor, 0), op.CastLike(1, divisor), divisor)), other))


_EUCLID_STEPS = 92
"""Enough for INT64: each two steps halve the larger number, and consecutive Fibonacci numbers below 2**63 need 91."""


def _gcd(a: Any, b: Any) -> Any:
    assert a.shape is not None
    assert b.shape is not None

    def step(a: Any, b: Any, _: Any) -> tuple[list[Any], list[Any]]:
        is_done = op.Equal(b, 0)
        rest = op.Mod(a, op.Where(is_done, op.CastLike(1, b), b))
        return [op.Where(is_done, a, b), op.Where(is_done, b, rest)], []

    zeros = op.Mul(op.Add(a, b), 0)
    rank = max(len(a.shape), len(b.shape))
    start = [op.Add(op.Abs(each), zeros) for each in (a, b)]
    for each in start:
        each.shape = ir.Shape([None] * rank)
    return scan(step, start, [op.Constant(value=ir.tensor(np.zeros(_EUCLID_STEPS, dtype=np.int64)))], 0)[0]


@translates("aten::frexp.Tensor")
def frexp(self: ir.Value) -> Any:
    """aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent): the mantissa in [0.5, 1) and the exponent of 2 (INT32)."""
    wide = op.Cast(self, to=int(ir.DataType.DOUBLE))
    is_plain = op.Not(op.Or(op.Or(op.Equal(wide, 0), op.IsInf(wide)), op.IsNaN(wide)))
    size = op.Where(is_plain, op.Abs(wide), op.CastLike(0.5, wide))
    exponent = op.Add(op.Floor(op.Div(op.Log(size), math.log(2))), 1)
    # NOTE: the logarithm may be rounded to the wrong side of a whole number.
    for change, is_off in ((1.0, op.GreaterOrEqual), (-1.0, op.Less)):
        mantissa = op.Div(size, op.Pow(op.CastLike(2.0, wide), exponent))
        exponent = op.Where(is_off(mantissa, 1.0 if change > 0 else 0.5), op.Add(exponent, change), exponent)
    mantissa = op.Where(is_plain, op.Div(wide, op.Pow(op.CastLike(2.0, wide), exponent)), wide)
    exponent = op.Where(is_plain, exponent, op.CastLike(0.0, exponent))
    return [op.CastLike(mantissa, self), op.Cast(exponent, to=int(ir.DataType.INT32))]


@translates("aten::relu")
def relu(self: ir.Value) -> Any:
    """aten::relu(Tensor self) -> Tensor. ONNX Runtime has no Relu of ints."""
    return op.Relu(self) if self.dtype is None or self.dtype.is_floating_point() else op.Max(self, 0)


@translates("aten::hypot")
def hypot(self: ir.Value, other: ir.Value) -> Any:
    """aten::hypot(Tensor self, Tensor other) -> Tensor: the length of the hypotenuse."""
    # NOTE: of sides divided by the longer one, so that the squares neither overflow nor vanish.
    self, other = op.Abs(self), op.Abs(other)
    longer = op.Max(self, other)
    ratio = op.Div(op.Min(self, other), longer)
    length = op.Mul(longer, op.Sqrt(op.Add(op.Mul(ratio, ratio), op.CastLike(1.0, longer))))
    # NOTE: in C, an infinite side makes the length infinite, also beside NaN.
    is_infinite = op.Or(op.IsInf(self), op.IsInf(other))
    length = op.Where(op.Equal(longer, op.CastLike(0.0, longer)), longer, length)
    return op.Where(is_infinite, op.CastLike(float("inf"), longer), length)


@translates("aten::fmin")
def fmin(self: ir.Value, other: ir.Value) -> Any:
    """aten::fmin(Tensor self, Tensor other) -> Tensor: the smaller one; of NaN and a number, the number."""
    return _without_nan("Min", self, other)


@translates("aten::fmax")
def fmax(self: ir.Value, other: ir.Value) -> Any:
    """aten::fmax(Tensor self, Tensor other) -> Tensor: the larger one; of NaN and a number, the number."""
    return _without_nan("Max", self, other)


def _without_nan(name: str, a: ir.Value, b: ir.Value) -> Any:
    if a.dtype is None or not a.dtype.is_floating_point():
        return getattr(op, name)(a, b)
    return op.Where(op.IsNaN(a), b, op.Where(op.IsNaN(b), a, getattr(op, name)(a, b)))


@translates("aten::clamp", "aten::clamp.Tensor")
def clamp(self: ir.Value, min: Any = None, max: Any = None) -> Any:
    """aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor. Where `min` is larger, the result is `max`."""
    # NOTE: ONNX Runtime 1.31 fails to load a Relu before a Clip in double precision (relu_clip_fusion.cc). A Clip ignores NaN as a bound.
    are_numbers = isinstance(min, int | float) and isinstance(max, int | float) and min == min and max == max
    if are_numbers and self.dtype != ir.DataType.DOUBLE:
        return op.Clip(self, min, max)
    # NOTE: a Clip with one bound turns infinity into the largest finite number.
    above = self if min is None else op.Max(self, _like(min, self))
    return above if max is None else op.Min(above, _like(max, self))


@translates("aten::hardtanh")
def hardtanh(self: ir.Value, min_val: float = -1, max_val: float = 1) -> Any:
    """aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor."""
    return clamp(self, min_val, max_val)


@translates("aten::relu6")
def relu6(self: ir.Value) -> Any:
    """aten::relu6(Tensor self) -> Tensor: within 0 and 6."""
    return clamp(self, 0, 6)


@translates("aten::clamp_min", "aten::clamp_min.Tensor")
def clamp_min(self: ir.Value, min: Any) -> Any:
    """aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor."""
    return clamp(self, min)


@translates("aten::clamp_max", "aten::clamp_max.Tensor")
def clamp_max(self: ir.Value, max: Any) -> Any:
    """aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor."""
    return clamp(self, None, max)


def _like(bound: Any, value: ir.Value) -> Any:
    return op.CastLike(bound, value) if isinstance(bound, ir.Value) else bound


@translates("aten::logit")
def logit(self: ir.Value, eps: float | None = None) -> Any:
    """aten::logit(Tensor self, float? eps=None) -> Tensor: log(x / (1 - x)), of x within [eps, 1 - eps]."""
    x = self if eps is None else clamp(self, eps, 1 - eps)
    return op.Log(op.Div(x, op.Sub(1, x)))


@translates("aten::rsqrt")
def rsqrt(self: ir.Value) -> Any:
    """aten::rsqrt(Tensor self) -> Tensor."""
    return op.Reciprocal(op.Sqrt(self))


@translates("aten::silu")
def silu(self: ir.Value) -> Any:
    """aten::silu(Tensor self) -> Tensor: x * sigmoid(x)."""
    return op.Mul(self, op.Sigmoid(self))


@translates("aten::add.Tensor", "aten::add.Scalar")
def add(self: Any, other: Any, alpha: float = 1) -> Any:
    """aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: self + alpha * other; for BOOL, or."""
    if _dtype(self, other) is _BOOL:
        return op.Or(self, other) if alpha else self
    return op.Add(self, _scaled(other, alpha))


@translates("aten::sub.Tensor", "aten::sub.Scalar")
def sub(self: Any, other: Any, alpha: float = 1) -> Any:
    """aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: self - alpha * other."""
    return op.Sub(self, _scaled(other, alpha))


@translates("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(self: Any, other: Any, alpha: float = 1) -> Any:
    """aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: other - alpha * self."""
    return sub(other, self, alpha)


@translates("aten::mul.Tensor", "aten::mul.Scalar", "aten::multiply.Tensor")
def mul(self: Any, other: Any) -> Any:
    """aten::mul.Tensor(Tensor self, Tensor other) -> Tensor; for BOOL, and."""
    return op.And(self, other) if _dtype(self, other) is _BOOL else op.Mul(self, other)


@translates("aten::div.Tensor", "aten::div.Scalar")
def div(self: Any, other: Any) -> Any:
    """aten::div.Tensor(Tensor self, Tensor other) -> Tensor. A float: `promote` has cast ints."""
    return op.Div(self, other)


@translates("aten::floor_divide")
def floor_divide(self: Any, other: Any) -> Any:
    """aten::floor_divide(Tensor self, Tensor other) -> Tensor: self / other, rounded toward minus infinity."""
    dtype = _dtype(self, other)
    if dtype is not None and dtype.is_floating_point():
        # NOTE: the quotient of 1 and 0.1 is rounded to 10, but 0.1 goes into 1 nine times.
        rest, is_below = _rest(self, other)
        whole = op.Sub(op.Round(op.Div(op.Sub(self, rest), other)), op.CastLike(is_below, rest))
        return op.Where(op.Equal(other, 0.0), op.Div(self, other), whole)
    if dtype in (ir.DataType.INT8, ir.DataType.INT16):
        # NOTE: the difference below may not fit.
        wide, by = (op.Cast(each, to=int(ir.DataType.INT32)) for each in (self, other))
        return op.Cast(op.Div(op.Sub(wide, op.Mod(wide, by)), by), to=int(dtype))
    return op.Div(op.Sub(self, op.Mod(self, other)), other)


@translates("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
def remainder(self: Any, other: Any) -> Any:
    """aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor. It has the sign of `other`, as in Python."""
    dtype = _dtype(self, other)
    if dtype is None or not dtype.is_floating_point():
        return op.Mod(self, other)
    # NOTE: self - floor(self / other) * other would round.
    rest, is_below = _rest(self, other)
    return op.Where(is_below, op.Add(rest, other), rest)


def _rest(a: Any, b: Any) -> tuple[Any, Any]:
    """The remainder of `a` / `b` rounded toward zero, and whether rounding toward minus infinity gives a lower quotient."""
    rest = op.Mod(a, b, fmod=1)
    zero = op.CastLike(0, rest)
    return rest, op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(b, zero)))


@translates("aten::xlogy.Tensor", "aten::xlogy.Scalar_Other", "aten::xlogy.Scalar_Self")
def xlogy(self: Any, other: Any) -> Any:
    """aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor. `self` times the logarithm of `other`; 0 where `self` is 0, but for NaN."""
    like = self if isinstance(self, ir.Value) else other
    factor, number, zero = (each if isinstance(each, ir.Value) else op.CastLike(float(each), like) for each in (self, other, 0))
    product = op.Where(op.Equal(factor, zero), zero, op.Mul(factor, op.Log(number)))
    return op.Where(op.IsNaN(number), number, product)


@translates("aten::float_power.Tensor_Scalar", "aten::float_power.Tensor_Tensor", "aten::float_power.Scalar")
def float_power(self: Any, exponent: Any) -> Any:
    """aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor. DOUBLE."""
    return op.Pow(double(self), double(exponent))


@translates("aten::eq.Tensor", "aten::eq.Scalar")
def eq(self: Any, other: Any) -> Any:
    """aten::eq.Tensor(Tensor self, Tensor other) -> Tensor. BOOL."""
    return op.Equal(self, other)


@translates("aten::ne.Tensor", "aten::ne.Scalar")
def ne(self: Any, other: Any) -> Any:
    """aten::ne.Tensor(Tensor self, Tensor other) -> Tensor. BOOL."""
    return op.Not(op.Equal(self, other))


def _comparison(name: str, operator: str) -> Callable[[Any, Any], Any]:
    def translation(self: Any, other: Any) -> Any:
        if _dtype(self, other) is _BOOL:
            self, other = _int(self), _int(other)
        return getattr(op, operator)(self, other)

    translation.__name__ = translation.__qualname__ = name
    translation.__doc__ = f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor. BOOL."
    return translation


for _name, _operator in {"ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less"}.items():
    translates(f"aten::{_name}.Tensor", f"aten::{_name}.Scalar")(_comparison(_name, _operator))


@translates("aten::isclose")
def isclose(self: ir.Value, other: ir.Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor. BOOL.

    |self - other| <= atol + rtol * |other|, or equal.
    """
    if self.dtype is not None and not self.dtype.is_floating_point():
        self, other = (op.Cast(each, to=int(ir.DataType.DOUBLE)) for each in (self, other))
    distance, size = op.Abs(op.Sub(self, other)), op.Abs(other)
    # NOTE: an infinite tolerance would accept every number.
    is_near = op.And(op.LessOrEqual(distance, op.Add(op.Mul(size, rtol), atol)), op.Not(op.IsInf(size)))
    is_close = op.Or(op.Equal(self, other), is_near)
    return op.Or(is_close, op.And(op.IsNaN(self), op.IsNaN(other))) if equal_nan else is_close


@translates("aten::logical_not")
def logical_not(self: ir.Value) -> Any:
    """aten::logical_not(Tensor self) -> Tensor. BOOL."""
    return op.Not(self if self.dtype is _BOOL else op.Cast(self, to=int(_BOOL)))


@translates("aten::where.self", "aten::where.ScalarOther", "aten::where.ScalarSelf", "aten::where.Scalar")
def where(condition: ir.Value, self: Any, other: Any) -> Any:
    """aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor."""
    if not isinstance(self, ir.Value) and not isinstance(other, ir.Value):
        # NOTE: bools as integers, since ONNX Runtime has no kernel for them.
        number = float if isinstance(self, float) or isinstance(other, float) else int
        self, other = number(self), number(other)
    return op.Where(condition, self, other)


@translates("aten::masked_fill.Scalar", "aten::masked_fill.Tensor")
def masked_fill(self: ir.Value, mask: ir.Value, value: Any) -> Any:
    """aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor."""
    return op.Where(mask, op.CastLike(value, self), self)


def _scaled(other: Any, alpha: float) -> Any:
    if alpha == 1:
        return other
    return op.Mul(other, alpha) if isinstance(other, ir.Value) else other * alpha


def _dtype(a: Any, b: Any) -> ir.DataType | None:
    value = a if isinstance(a, ir.Value) else b
    return value.dtype if isinstance(value, ir.Value) else None


def _int(value: Any) -> Any:
    return op.Cast(value, to=int(ir.DataType.INT32)) if isinstance(value, ir.Value) else int(value)
