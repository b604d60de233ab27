"""The gamma function and its relatives."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.ops import translates
from onnxplain.ops.loops import scan
from onnxplain.recording import op

from . import coefficients as c
from .series import DOUBLE, choose, filled, in_double, indices, largest, number, polynomial, total, zeros


@translates("aten::lgamma")
@in_double
def lgamma(self: ir.Value) -> Any:
    """aten::lgamma(Tensor self) -> Tensor: the logarithm of |gamma(x)|, by Lanczos's approximation."""
    return _lgamma(self)


def _lgamma(x: Any) -> Any:
    # NOTE: below 0.5 by reflection: gamma(x) * gamma(1 - x) = pi / sin(pi * x).
    is_low = op.Less(x, 0.5)
    z = op.Sub(op.Where(is_low, op.Sub(1.0, x), x), 1)
    sum_ = number(c.LANCZOS_FIRST)
    for k, each in enumerate(c.LANCZOS, start=1):
        sum_ = op.Add(sum_, op.Div(number(each), op.Add(z, k)))
    t = op.Add(z, 7.5)
    high = op.Add(op.Sub(op.Mul(op.Add(z, 0.5), op.Log(t)), t), op.Add(op.Log(sum_), math.log(2 * math.pi) / 2))
    low = op.Sub(op.Sub(math.log(math.pi), op.Log(op.Abs(_sine_of_pi(x)))), high)
    is_pole = op.And(op.LessOrEqual(x, 0), op.Equal(x, op.Floor(x)))
    return choose((op.Or(op.IsInf(x), is_pole), math.inf), (is_low, low), otherwise=high)


def _sine_of_pi(x: Any) -> Any:
    """sin(pi * x), exact for large x."""
    return op.Sin(op.Mul(op.Sub(x, op.Mul(op.Floor(op.Div(x, 2)), 2)), math.pi))


@translates("aten::mvlgamma")
def mvlgamma(self: ir.Value, p: int) -> Any:
    """aten::mvlgamma(Tensor self, int p) -> Tensor: the logarithm of the multivariate gamma function."""

    @in_double
    def computed(x: Any) -> Any:
        sum_ = number(p * (p - 1) / 4 * math.log(math.pi))
        for j in range(p):
            sum_ = op.Add(sum_, _lgamma(op.Sub(x, j / 2)))
        return sum_

    return computed(self)


@translates("aten::digamma")
@in_double
def digamma(self: ir.Value) -> Any:
    """aten::digamma(Tensor self) -> Tensor: the derivative of the logarithm of the gamma function."""
    return _digamma(self)


def _digamma(x: Any) -> Any:
    is_low = op.Less(x, 0)
    shifted = op.Where(is_low, op.Sub(1.0, x), x)
    # NOTE: the recurrence leads to 10 and above, where the asymptotic series holds.
    before = number(0)
    for _ in range(10):
        is_small = op.Less(shifted, 10)
        before = op.Sub(before, op.Where(is_small, op.Reciprocal(shifted), number(0)))
        shifted = op.Where(is_small, op.Add(shifted, 1), shifted)
    inverse = op.Reciprocal(op.Mul(shifted, shifted))
    rest = op.Mul(inverse, polynomial(inverse, c.DIGAMMA))
    high = op.Add(before, op.Sub(op.Sub(op.Log(shifted), op.Div(number(0.5), shifted)), rest))
    fraction = op.Mul(op.Sub(x, op.Floor(x)), math.pi)
    low = op.Sub(high, op.Div(op.Mul(op.Cos(fraction), math.pi), op.Sin(fraction)))
    at_zero = op.Neg(op.Reciprocal(x))
    return choose((op.Equal(x, 0), at_zero), (op.And(is_low, op.Equal(x, op.Floor(x))), math.nan), (is_low, low), otherwise=high)


@translates("aten::polygamma")
def polygamma(n: int, self: ir.Value) -> Any:
    """aten::polygamma(int n, Tensor self) -> Tensor: the n-th derivative of `digamma`."""

    @in_double
    def computed(x: Any) -> Any:
        if n == 0:
            return _digamma(x)
        if n == 1:
            return _trigamma(x, is_single=self.dtype is not DOUBLE)
        return op.Mul(_zeta(filled(n + 1, x), x), (-1.0) ** (n + 1) * math.factorial(n))

    return computed(self)


def _trigamma(x: Any, *, is_single: bool) -> Any:
    is_low = op.Less(x, 0.5)
    shifted = op.Where(is_low, op.Sub(1.0, x), x)
    sum_ = number(0)
    for _ in range(6):
        sum_ = op.Add(sum_, op.Reciprocal(op.Mul(shifted, shifted)))
        shifted = op.Add(shifted, 1)
    square = op.Reciprocal(op.Mul(shifted, shifted))
    series = polynomial(square, (1 / 42, -1 / 30, 1 / 6, 0.0))
    tail = op.Div(op.Add(op.Add(op.Div(number(0.5), shifted), 1), series), shifted)
    high = op.Add(sum_, tail)
    # NOTE: near a pole PyTorch's result depends on the rounding of the angle.
    angle = op.Mul(op.Cast(x, to=int(ir.DataType.FLOAT)), math.pi) if is_single else op.Mul(x, math.pi)
    sine = op.Sin(op.Cast(angle, to=int(DOUBLE)))
    low = op.Sub(op.Div(number(math.pi**2), op.Mul(sine, sine)), high)
    return op.Where(is_low, low, high)


@translates("aten::special_zeta", "aten::special_zeta.self_scalar", "aten::special_zeta.other_scalar")
@in_double
def zeta(self: Any, other: Any) -> Any:
    """aten::special_zeta(Tensor self, Tensor other) -> Tensor: Hurwitz's zeta function, by the formula of Euler and Maclaurin."""
    self, other = (each if isinstance(each, ir.Value) else number(each) for each in (self, other))
    return _zeta(self, other)


def _zeta(x: Any, q: Any) -> Any:
    like = zeros(x, q)
    # NOTE: as many terms that all summands behind them are positive, whatever q is.
    count = op.Add(op.Ceil(largest(op.Neg(q))), 10)
    exponent = op.Neg(x)
    sum_ = total(lambda k: op.Pow(op.Add(q, k), exponent), count, like)
    w = op.Add(q, op.Sub(count, 1))
    b = op.Pow(w, exponent)
    sum_ = op.Sub(op.Add(sum_, op.Div(op.Mul(b, w), op.Sub(x, 1))), op.Mul(b, 0.5))
    factor = number(1)
    for position, each in enumerate(c.ZETA):
        k = 2 * position
        factor = op.Mul(factor, op.Add(x, k))
        b = op.Div(b, w)
        sum_ = op.Add(sum_, op.Div(op.Mul(factor, b), each))
        factor = op.Mul(factor, op.Add(x, k + 1))
        b = op.Div(b, w)
    is_whole = op.Equal(q, op.Floor(q))
    is_low = op.LessOrEqual(q, 0)
    return choose(
        (op.Equal(x, 1), math.inf),
        (op.Less(x, 1), math.nan),
        (op.And(is_low, is_whole), math.inf),
        (op.And(is_low, op.Not(op.Equal(x, op.Floor(x)))), math.nan),
        otherwise=sum_,
    )


@translates("aten::igamma")
@in_double
def igamma(self: ir.Value, other: ir.Value) -> Any:
    """aten::igamma(Tensor self, Tensor other) -> Tensor: the regularized lower incomplete gamma function P(a, x)."""
    return _incomplete(self, other, upper=False)


@translates("aten::igammac")
@in_double
def igammac(self: ir.Value, other: ir.Value) -> Any:
    """aten::igammac(Tensor self, Tensor other) -> Tensor: the regularized upper incomplete gamma function Q(a, x)."""
    return _incomplete(self, other, upper=True)


_TERMS = 300
"""Terms of the series and of the continued fraction: enough for numbers up to about 1000."""


def _incomplete(a: Any, x: Any, *, upper: bool) -> Any:
    """The series of P below a + 1, the continued fraction of Q above (Cephes, igam.c)."""
    like = zeros(a, x)
    factor = op.Exp(op.Sub(op.Sub(op.Mul(a, op.Log(x)), x), _lgamma(a)))

    def series(term: Any, sum_: Any, k: Any) -> tuple[list[Any], list[Any]]:
        term = op.Mul(term, op.Div(x, op.Add(a, k)))
        return [term, op.Add(sum_, term)], []

    one = filled(1, like)
    _, sum_ = scan(series, [one, one], [indices(1, _TERMS)], 0)
    lower = op.Div(op.Mul(factor, sum_), a)

    def fraction(c: Any, d: Any, h: Any, k: Any) -> tuple[list[Any], list[Any]]:
        # Lentz's method.
        an = op.Mul(op.Neg(k), op.Sub(k, a))
        b = op.Add(op.Add(op.Sub(x, a), 1), op.Mul(k, 2))
        d = op.Reciprocal(_not_zero(op.Add(op.Mul(an, d), b)))
        c = _not_zero(op.Add(b, op.Div(an, c)))
        return [c, d, op.Mul(h, op.Mul(c, d))], []

    first = op.Add(op.Sub(x, a), 1)
    start = op.Add(op.Reciprocal(_not_zero(first)), like)
    start.shape = like.shape
    *_, h = scan(fraction, [filled(1e300, like), start, start], [indices(1, _TERMS)], 0)
    higher = op.Mul(factor, h)
    is_near = op.Less(x, op.Add(a, 1))
    lowest, highest = (1.0, 0.0) if upper else (0.0, 1.0)
    near, far = (op.Sub(1.0, lower), higher) if upper else (lower, op.Sub(1.0, higher))
    return choose(
        (op.Or(op.Less(x, 0), op.Less(a, 0)), math.nan),
        (op.Equal(a, 0), op.Where(op.Greater(x, 0), number(highest), number(math.nan))),
        (op.Equal(x, 0), lowest),
        (op.IsInf(a), op.Where(op.IsInf(x), number(math.nan), number(lowest))),
        (op.IsInf(x), highest),
        (is_near, near),
        otherwise=far,
    )


def _not_zero(x: Any) -> Any:
    return op.Where(op.Equal(x, 0), number(1e-300), x)
