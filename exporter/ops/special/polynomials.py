"""Orthogonal polynomials of a degree that is a tensor as well, by their recurrences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onnxplain.ops import translates
from onnxplain.ops.loops import scan
from onnxplain.recording import op

from .series import DOUBLE, choose, filled, in_double, indices, largest, number, zeros


@dataclasses.dataclass(frozen=True)
class _Family:
    """A family of polynomials P.

    Attributes:
        first: P1 of x.
        next: P(k + 1) of x, k, Pk and P(k - 1).
    """

    first: Callable[[Any], Any]
    next: Callable[[Any, Any, Any, Any], Any]


def _twice(x: Any) -> Any:
    return op.Add(x, x)


def _chebyshev(x: Any, _: Any, q: Any, p: Any) -> Any:
    return op.Sub(op.Mul(_twice(x), q), p)


def _hermite_h(x: Any, k: Any, q: Any, p: Any) -> Any:
    return op.Sub(op.Mul(_twice(x), q), op.Mul(_twice(k), p))


def _hermite_he(x: Any, k: Any, q: Any, p: Any) -> Any:
    return op.Sub(op.Mul(x, q), op.Mul(k, p))


def _laguerre(x: Any, k: Any, q: Any, p: Any) -> Any:
    return op.Div(op.Sub(op.Mul(op.Add(_twice(k), op.Sub(1.0, x)), q), op.Mul(k, p)), op.Add(k, 1))


def _legendre(x: Any, k: Any, q: Any, p: Any) -> Any:
    return op.Div(op.Sub(op.Mul(op.Mul(op.Add(_twice(k), 1), x), q), op.Mul(k, p)), op.Add(k, 1))


_FAMILIES = {
    "chebyshev_polynomial_t": _Family(lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": _Family(_twice, _chebyshev),
    "chebyshev_polynomial_v": _Family(lambda x: op.Sub(_twice(x), 1), _chebyshev),
    "chebyshev_polynomial_w": _Family(lambda x: op.Add(_twice(x), 1), _chebyshev),
    "hermite_polynomial_h": _Family(_twice, _hermite_h),
    "hermite_polynomial_he": _Family(lambda x: x, _hermite_he),
    "laguerre_polynomial_l": _Family(lambda x: op.Sub(1.0, x), _laguerre),
    "legendre_polynomial_p": _Family(lambda x: x, _legendre),
}


def _value(family: _Family, x: Any, n: Any) -> Any:
    """P of degree `n`, rounded toward zero, at `x`; 0 for a negative degree."""
    degree = _whole(n)
    like = zeros(x, degree)
    one = filled(1, like)
    first = op.Add(family.first(x), like)
    first.shape = like.shape

    def step(p: Any, q: Any, found: Any, k: Any) -> tuple[list[Any], list[Any]]:
        r = family.next(x, k, q, p)
        return [q, r, op.Where(op.Equal(degree, op.Add(k, 1)), r, found)], []

    start = choose((op.Less(degree, 0), 0.0), (op.Equal(degree, 0), 1.0), otherwise=first)
    start = op.Add(start, like)
    start.shape = like.shape
    *_, found = scan(step, [one, first, start], [indices(1, largest(degree))], 0)
    return found


def _whole(n: Any) -> Any:
    # NOTE: a cast to int rounds toward zero.
    made = op.Cast(op.Cast(n, to=int(ir.DataType.INT64)), to=int(DOUBLE))
    made.shape = n.shape
    return made


def _translation(name: str, family: _Family) -> Callable[[Any, Any], Any]:
    def translation(x: Any, n: Any) -> Any:
        x, n = (each if isinstance(each, ir.Value) else number(each) for each in (x, n))
        if name.startswith("shifted"):
            shifted = op.Sub(_twice(x), 1)
            shifted.shape = x.shape
            x = shifted
        return _value(family, x, n)

    translation.__name__ = translation.__qualname__ = name
    translation.__doc__ = f"aten::special_{name}(Tensor x, Tensor n) -> Tensor."
    return in_double(translation)


for _name, _family in _FAMILIES.items():
    for _each in (_name, f"shifted_{_name}") if _name.startswith("chebyshev") else (_name,):
        translates(*(f"aten::special_{_each}{overload}" for overload in ("", ".x_scalar", ".n_scalar")))(_translation(_each, _family))
