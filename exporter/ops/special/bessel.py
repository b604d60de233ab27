"""Bessel functions, modified and plain, and Airy's function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.ops import translates
from onnxplain.recording import op

from . import bessel_coefficients as c
from .series import chebyshev, choose, in_double, number, polynomial, ratio


def _i0e(x: Any) -> Any:
    size = op.Abs(x)
    small = chebyshev(op.Sub(op.Div(size, 2), 2), c.I0_SMALL, x)
    large = op.Div(chebyshev(op.Sub(op.Div(number(32), size), 2), c.I0_LARGE, x), op.Sqrt(size))
    return op.Where(op.LessOrEqual(size, 8), small, large)


def _i1e(x: Any) -> Any:
    size = op.Abs(x)
    small = op.Mul(chebyshev(op.Sub(op.Div(size, 2), 2), c.I1_SMALL, x), size)
    large = op.Div(chebyshev(op.Sub(op.Div(number(32), size), 2), c.I1_LARGE, x), op.Sqrt(size))
    return op.Mul(op.Sign(x), op.Where(op.LessOrEqual(size, 8), small, large))


@translates("aten::i0", "aten::special_modified_bessel_i0")
@in_double
def i0(self: ir.Value) -> Any:
    """aten::i0(Tensor self) -> Tensor: the modified Bessel function of the first kind and order 0."""
    return op.Mul(op.Exp(op.Abs(self)), _i0e(self))


@translates("aten::special_i0e")
@in_double
def i0e(self: ir.Value) -> Any:
    """aten::special_i0e(Tensor self) -> Tensor: exp(-|x|) * i0(x)."""
    return _i0e(self)


@translates("aten::special_i1", "aten::special_modified_bessel_i1")
@in_double
def i1(self: ir.Value) -> Any:
    """aten::special_i1(Tensor self) -> Tensor: the modified Bessel function of the first kind and order 1."""
    return op.Mul(op.Exp(op.Abs(self)), _i1e(self))


@translates("aten::special_i1e")
@in_double
def i1e(self: ir.Value) -> Any:
    """aten::special_i1e(Tensor self) -> Tensor: exp(-|x|) * i1(x)."""
    return _i1e(self)


def _k(x: Any, order: int, *, scaled: bool) -> Any:
    """The modified Bessel function of the second kind, multiplied by exp(x) if `scaled`."""
    logarithm = op.Log(op.Mul(x, 0.5))
    square = op.Sub(op.Mul(x, x), 2)
    if order == 0:
        small = op.Sub(chebyshev(square, c.K0_SMALL, x), op.Mul(logarithm, op.Mul(op.Exp(op.Abs(x)), _i0e(x))))
    else:
        small = op.Add(op.Mul(logarithm, op.Mul(op.Exp(op.Abs(x)), _i1e(x))), op.Div(chebyshev(square, c.K1_SMALL, x), x))
    large = op.Div(chebyshev(op.Sub(op.Div(number(8), x), 2), c.K0_LARGE if order == 0 else c.K1_LARGE, x), op.Sqrt(x))
    small, large = (op.Mul(small, op.Exp(x)), large) if scaled else (small, op.Mul(op.Exp(op.Neg(x)), large))
    return choose((op.Equal(x, 0), math.inf), (op.Less(x, 0), math.nan), (op.LessOrEqual(x, 2), small), otherwise=large)


@translates("aten::special_modified_bessel_k0")
@in_double
def k0(self: ir.Value) -> Any:
    """aten::special_modified_bessel_k0(Tensor self) -> Tensor: the modified Bessel function of the second kind and order 0."""
    return _k(self, 0, scaled=False)


@translates("aten::special_modified_bessel_k1")
@in_double
def k1(self: ir.Value) -> Any:
    """aten::special_modified_bessel_k1(Tensor self) -> Tensor: the modified Bessel function of the second kind and order 1."""
    return _k(self, 1, scaled=False)


@translates("aten::special_scaled_modified_bessel_k0")
@in_double
def scaled_k0(x: ir.Value) -> Any:
    """aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor: exp(x) * k0(x)."""
    return _k(x, 0, scaled=True)


@translates("aten::special_scaled_modified_bessel_k1")
@in_double
def scaled_k1(x: ir.Value) -> Any:
    """aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor: exp(x) * k1(x)."""
    return _k(x, 1, scaled=True)


_Tables = Sequence[Sequence[float]]
_FAR: Sequence[_Tables] = ((c.J0_PP, c.J0_PQ, c.J0_QP, c.J0_QQ), (c.J1_PP, c.J1_PQ, c.J1_QP, c.J1_QQ))


def _far(x: Any, order: int) -> tuple[Any, Any]:
    """The functions of the first and second kind above 5: a phase and an amplitude of the asymptotic series."""
    inverse = op.Div(number(5), x)
    square = op.Mul(inverse, inverse)
    pp, pq, qp, qq = _FAR[order]
    even, odd = ratio(square, pp, pq), op.Mul(inverse, ratio(square, qp, qq))
    angle = op.Sub(x, math.pi / 4 + order * math.pi / 2)
    size = op.Div(number(math.sqrt(2 / math.pi)), op.Sqrt(x))
    sine, cosine = op.Sin(angle), op.Cos(angle)
    first = op.Sub(op.Mul(even, cosine), op.Mul(odd, sine))
    second = op.Add(op.Mul(even, sine), op.Mul(odd, cosine))
    return op.Mul(first, size), op.Mul(second, size)


def _roots(square: Any, first: float, second: float) -> Any:
    return op.Mul(op.Sub(square, first), op.Sub(square, second))


def _j0(x: Any) -> Any:
    size = op.Abs(x)
    square = op.Mul(x, x)
    near = op.Mul(_roots(square, 5.78318596294678452118, 30.4712623436620863991), ratio(square, c.J0_RP, c.J0_RQ))
    return op.Where(op.LessOrEqual(size, 5), near, _far(size, 0)[0])


def _j1(x: Any) -> Any:
    size = op.Abs(x)
    square = op.Mul(x, x)
    near = op.Mul(op.Mul(size, _roots(square, 14.6819706421238932572, 49.2184563216946036703)), ratio(square, c.J1_RP, c.J1_RQ))
    return op.Mul(op.Sign(x), op.Where(op.LessOrEqual(size, 5), near, _far(size, 1)[0]))


@translates("aten::special_bessel_j0")
@in_double
def bessel_j0(self: ir.Value) -> Any:
    """aten::special_bessel_j0(Tensor self) -> Tensor: the Bessel function of the first kind and order 0."""
    return _j0(self)


@translates("aten::special_bessel_j1")
@in_double
def bessel_j1(self: ir.Value) -> Any:
    """aten::special_bessel_j1(Tensor self) -> Tensor: the Bessel function of the first kind and order 1."""
    return _j1(self)


@translates("aten::special_bessel_y0")
@in_double
def bessel_y0(self: ir.Value) -> Any:
    """aten::special_bessel_y0(Tensor self) -> Tensor: the Bessel function of the second kind and order 0."""
    square = op.Mul(self, self)
    near = op.Add(ratio(square, c.Y0_YP, c.Y0_YQ), op.Mul(op.Mul(op.Log(self), 2 / math.pi), _j0(self)))
    return _second_kind(self, near, 0)


@translates("aten::special_bessel_y1")
@in_double
def bessel_y1(self: ir.Value) -> Any:
    """aten::special_bessel_y1(Tensor self) -> Tensor: the Bessel function of the second kind and order 1."""
    square = op.Mul(self, self)
    rest = op.Mul(op.Sub(op.Mul(_j1(self), op.Log(self)), op.Reciprocal(self)), 2 / math.pi)
    return _second_kind(self, op.Add(op.Mul(self, ratio(square, c.Y1_YP, c.Y1_YQ)), rest), 1)


def _second_kind(x: Any, near: Any, order: int) -> Any:
    return choose((op.Equal(x, 0), -math.inf), (op.Less(x, 0), math.nan), (op.LessOrEqual(x, 5), near), otherwise=_far(x, order)[1])


@translates("aten::special_spherical_bessel_j0")
@in_double
def spherical_bessel_j0(x: ir.Value) -> Any:
    """aten::special_spherical_bessel_j0(Tensor x) -> Tensor: sin(x) / x."""
    square = op.Mul(x, x)
    powers = [1 / math.factorial(2 * k + 1) * (-1) ** k for k in range(6, -1, -1)]
    quotient = op.Where(op.Less(op.Abs(x), 0.5), polynomial(square, powers), op.Div(op.Sin(x), x))
    return choose((op.IsInf(x), 0.0), otherwise=quotient)


@translates("aten::special_airy_ai")
@in_double
def airy_ai(x: ir.Value) -> Any:
    """aten::special_airy_ai(Tensor x) -> Tensor: Airy's function Ai."""
    size = op.Abs(x)
    root = op.Sqrt(size)
    zeta = op.Div(op.Mul(op.Mul(size, root), 2), 3)
    inverse = op.Reciprocal(zeta)
    square = op.Mul(inverse, inverse)
    angle = op.Add(zeta, math.pi / 4)
    even = op.Add(op.Mul(square, ratio(square, c.AIRY_AFN, c.AIRY_AFD)), 1)
    odd = op.Mul(inverse, ratio(square, c.AIRY_AGN, c.AIRY_AGD))
    scale = 1 / math.sqrt(math.pi)
    low = op.Div(op.Mul(op.Sub(op.Mul(op.Sin(angle), even), op.Mul(op.Cos(angle), odd)), scale), op.Sqrt(root))
    high = op.Div(op.Mul(ratio(inverse, c.AIRY_AN, c.AIRY_AD), scale / 2), op.Mul(op.Sqrt(root), op.Exp(zeta)))
    middle = _airy_series(x)
    return choose(
        (op.IsInf(x), math.nan),
        (op.Greater(x, 103.892), 0.0),
        (op.Less(x, -2.09), low),
        (op.GreaterOrEqual(x, 2.09), high),
        otherwise=middle,
    )


_AIRY_TERMS = 12
"""Enough for |x| up to 2.09: the terms fall like x**(3 k) / (3 k)!."""


def _airy_series(x: Any) -> Any:
    """Maclaurin's series c1 * f(x) - c2 * g(x)."""
    cube = op.Mul(op.Mul(x, x), x)
    first, second = [1.0], [1.0]
    for k in range(1, _AIRY_TERMS):
        first.append(first[-1] / ((3 * k - 1) * 3 * k))
        second.append(second[-1] / (3 * k * (3 * k + 1)))
    f = polynomial(cube, first[::-1])
    g = op.Mul(x, polynomial(cube, second[::-1]))
    return op.Sub(op.Mul(f, 0.355028053887817239260), op.Mul(g, 0.258819403792806798405))
