"""The error function and the normal distribution, with their inverses."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.ops import translates
from onnxplain.recording import op

from . import coefficients as c
from .series import choose, in_double, number, ratio


def _erf(x: Any) -> Any:
    """The error function for -1 <= x <= 1 in DOUBLE, which ONNX Runtime's Erf has not."""
    return op.Mul(x, ratio(op.Mul(x, x), c.ERF_T, c.ERF_U))


def _far(size: Any) -> Any:
    """erfcx(x) = exp(x**2) * erfc(x) for x >= 1."""
    # NOTE: the ratio of two polynomials of an infinite number is NaN.
    inverse = op.Reciprocal(size)
    far = op.Mul(inverse, _in_inverse(inverse))
    return op.Where(op.Less(size, 8), ratio(size, c.ERFC_P, c.ERFC_Q), far)


def _in_inverse(inverse: Any) -> Any:
    return ratio(inverse, c.ERFC_R[::-1], c.ERFC_S[::-1])


@translates("aten::special_erfcx")
@in_double
def erfcx(self: ir.Value) -> Any:
    """aten::special_erfcx(Tensor self) -> Tensor: exp(x**2) * erfc(x)."""
    return _erfcx(self)


def _erfcx(x: Any) -> Any:
    size = op.Abs(x)
    grown = op.Exp(op.Mul(x, x))
    near = op.Mul(grown, op.Sub(1.0, _erf(x)))
    far = _far(size)
    return choose((op.Less(size, 1), near), (op.Less(x, 0), op.Sub(op.Mul(grown, 2), far)), otherwise=far)


@translates("aten::erf", "aten::special_erf")
def erf(self: ir.Value) -> Any:
    """aten::erf(Tensor self) -> Tensor: the error function. ONNX Runtime has no Erf of DOUBLE."""
    if self.dtype is not ir.DataType.DOUBLE:
        return op.Erf(self)
    size = op.Abs(self)
    return op.Where(op.Less(size, 1), _erf(self), op.Mul(op.Sign(self), op.Sub(1.0, _erfc(size))))


@translates("aten::erfc", "aten::special_erfc")
@in_double
def erfc(self: ir.Value) -> Any:
    """aten::erfc(Tensor self) -> Tensor: 1 - erf(x)."""
    return _erfc(self)


def _erfc(x: Any) -> Any:
    tail = op.Mul(op.Exp(op.Neg(op.Mul(x, x))), _far(op.Abs(x)))
    return choose((op.Less(op.Abs(x), 1), op.Sub(1.0, _erf(x))), (op.Less(x, 0), op.Sub(2.0, tail)), otherwise=tail)


@translates("aten::special_ndtr")
@in_double
def ndtr(self: ir.Value) -> Any:
    """aten::special_ndtr(Tensor self) -> Tensor: the normal distribution function."""
    return op.Mul(_erfc(op.Mul(self, -math.sqrt(0.5))), 0.5)


@translates("aten::special_log_ndtr")
@in_double
def log_ndtr(self: ir.Value) -> Any:
    """aten::special_log_ndtr(Tensor self) -> Tensor: the logarithm of the normal distribution function."""
    t = op.Mul(self, math.sqrt(0.5))
    tail = op.Sub(op.Log(op.Div(_erfcx(op.Neg(t)), 2)), op.Mul(t, t))
    return op.Where(op.Less(self, -1), tail, _log1p(op.Neg(op.Mul(_erfc(t), 0.5))))


def _log1p(x: Any) -> Any:
    """log(1 + x), also where x is small."""
    sum_ = op.Add(x, 1)
    return op.Where(op.Equal(sum_, 1), x, op.Div(op.Mul(op.Log(sum_), x), op.Sub(sum_, 1)))


@translates("aten::erfinv")
@in_double
def erfinv(self: ir.Value) -> Any:
    """aten::erfinv(Tensor self) -> Tensor: a rational approximation, then two steps of Newton's method."""
    size = op.Abs(self)
    square = op.Mul(self, self)
    near = op.Mul(
        self,
        ratio(
            square,
            (-0.140543331, 0.914624893, -1.645349621, 0.886226899),
            (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0),
        ),
    )
    z = op.Sqrt(op.Neg(op.Log(op.Div(op.Sub(1.0, size), 2))))
    far = op.Mul(op.Sign(self), ratio(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454), (1.637067800, 3.543889200, 1.0)))
    x = op.Where(op.LessOrEqual(size, 0.7), near, far)
    for _ in range(2):
        slope = op.Mul(op.Exp(op.Neg(op.Mul(x, x))), 2 / math.sqrt(math.pi))
        # NOTE: where the result is near 1, erfc keeps the digits that erf loses.
        error = op.Where(op.Greater(size, 0.5), op.Mul(op.Sign(self), op.Sub(op.Sub(1.0, size), _erfc(op.Abs(x)))), op.Sub(_erf(x), self))
        x = op.Sub(x, op.Div(error, slope))
    infinite = op.Mul(op.Sign(self), number(math.inf))
    return choose((op.Equal(size, 1), infinite), (op.Greater(size, 1), math.nan), otherwise=x)


@translates("aten::special_ndtri")
@in_double
def ndtri(self: ir.Value) -> Any:
    """aten::special_ndtri(Tensor self) -> Tensor: the inverse of `ndtr`."""
    tail = math.exp(-2)
    is_upper = op.Greater(self, 1 - tail)
    y = op.Where(is_upper, op.Sub(1.0, self), self)
    centred = op.Sub(y, 0.5)
    square = op.Mul(centred, centred)
    middle = op.Mul(op.Add(centred, op.Mul(centred, op.Mul(square, ratio(square, c.NDTRI_P0, c.NDTRI_Q0)))), math.sqrt(2 * math.pi))
    x = op.Sqrt(op.Mul(op.Log(y), -2))
    z = op.Reciprocal(x)
    near, far = ratio(z, c.NDTRI_P1, c.NDTRI_Q1), ratio(z, c.NDTRI_P2, c.NDTRI_Q2)
    outer = op.Sub(op.Sub(x, op.Div(op.Log(x), x)), op.Mul(z, op.Where(op.Less(x, 8), near, far)))
    return choose(
        (op.Equal(self, 0), -math.inf),
        (op.Equal(self, 1), math.inf),
        (op.Or(op.Less(self, 0), op.Greater(self, 1)), math.nan),
        (op.Greater(y, tail), middle),
        (is_upper, outer),
        otherwise=op.Neg(outer),
    )
