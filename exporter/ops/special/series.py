"""Polynomials and series in DOUBLE."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.ops.casts import cast
from onnxplain.ops.loops import scan
from onnxplain.recording import op

DOUBLE = ir.DataType.DOUBLE


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """A translation that gets floating tensors as DOUBLE and gives its result in their dtype."""

    @functools.wraps(function)
    def translation(*args: Any) -> Any:
        dtype = next(each.dtype for each in args if isinstance(each, ir.Value) and each.dtype is not None)
        # NOTE: PyTorch's result for ints is FLOAT, and `promote` casts before those operators only that torch tags as pointwise.
        dtype = dtype if dtype.is_floating_point() else ir.DataType.FLOAT
        return cast(function(*(as_double(each) if isinstance(each, ir.Value) else each for each in args)), int(dtype))

    return translation


def as_double(value: Any) -> Any:
    """A value in DOUBLE, with its shape."""
    made = cast(value, int(DOUBLE))
    if made is not value:
        made.shape = value.shape
    return made


def number(value: float) -> Any:
    """A DOUBLE scalar."""
    return op.Constant(value=ir.tensor(float(value), dtype=DOUBLE))


def filled(value: float, like: Any) -> Any:
    """A number in the shape of `like`."""
    made = op.Expand(number(value), op.Shape(like))
    made.shape = like.shape
    return made


def zeros(a: Any, b: Any) -> Any:
    """Zeros in the shape to which two values broadcast."""
    made = op.Expand(op.Expand(number(0), op.Shape(a)), op.Shape(b))
    made.shape = ir.Shape([None] * max(len(a.shape), len(b.shape)))
    return made


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, the highest power first, by Horner's method."""
    first, second, *rest = coefficients
    total = op.Add(x if first == 1 else op.Mul(x, first), second)
    for each in rest:
        total = op.Add(op.Mul(total, x), each)
    return total


def ratio(x: Any, numerator: Sequence[float], denominator: Sequence[float]) -> Any:
    """The quotient of two polynomials."""
    return op.Div(polynomial(x, numerator), polynomial(x, denominator))


def chebyshev(x: Any, coefficients: Sequence[float], like: Any) -> Any:
    """A Chebyshev series at x / 2, which has as many dims as `like`, by Clenshaw's recurrence (`chbevl` of Cephes)."""

    def step(b: Any, q: Any, _: Any, each: Any) -> tuple[list[Any], list[Any]]:
        return [op.Add(op.Sub(op.Mul(x, b), q), each), b, q], []

    zero = filled(0, like)
    rest = op.Constant(value=ir.tensor(np.array(coefficients[1:])))
    b, _, p = scan(step, [filled(coefficients[0], like), zero, zero], [rest], 0)
    return op.Mul(op.Sub(b, p), 0.5)


def total(term: Callable[[Any], Any], count: Any, like: Any) -> Any:
    """The sum of `term(k)` for k = 0 to `count` - 1 as DOUBLE scalars; at least one term."""

    def step(so_far: Any, k: Any) -> tuple[list[Any], list[Any]]:
        return [op.Add(so_far, term(k))], []

    (made,) = scan(step, [filled(0, like)], [indices(0, count)], 0)
    made.shape = like.shape
    return made


def indices(first: int, end: Any) -> Any:
    """The DOUBLE numbers from `first` to `end` - 1, at least one."""
    made = op.Range(number(first), op.Max(as_double(end) if isinstance(end, ir.Value) else number(end), number(first + 1)), number(1))
    made.shape = ir.Shape([None])
    return made


def largest(value: Any) -> Any:
    """The largest element that is finite, and at least 0, as a scalar."""
    finite = op.And(op.Not(op.IsInf(value)), op.Not(op.IsNaN(value)))
    return op.ReduceMax(op.Where(finite, op.Max(value, number(0)), number(0)), None, keepdims=0)


def choose(*cases: tuple[Any, Any], otherwise: Any) -> Any:
    """The value beside the first condition that holds; numbers become DOUBLE."""
    for condition, value in reversed(cases):
        otherwise = op.Where(condition, value if isinstance(value, ir.Value) else number(value), otherwise)
    return otherwise
