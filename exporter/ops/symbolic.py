"""Arithmetic with sizes: Python's operators on symbolic ints, floats and bools, as ONNX scalars (INT64, FLOAT, BOOL).

An int and a float give a float; comparisons give a bool. Floats are computed in double precision, as in Python: many sizes are floors of
floats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onnxplain.recording import PRECISE, VECTOR, op

from . import translates

_FLOAT, _DOUBLE, _INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64


@translates("aten::sym_size.int")
def sym_size(self: ir.Value, dim: int) -> Any:
    """aten::sym_size.int(Tensor self, int dim) -> SymInt. An INT64 scalar."""
    assert self.shape is not None
    dim %= len(self.shape)
    size: Any = op.Shape(self, start=dim, end=dim + 1)
    scalar: Any = op.Squeeze(size)
    scalar.meta[VECTOR] = size
    return scalar


@translates("aten::sym_numel")
def sym_numel(self: ir.Value) -> Any:
    """aten::sym_numel(Tensor self) -> SymInt. An INT64 scalar."""
    return op.Size(self)


@translates("_operator::add")
def add(a: Any, b: Any) -> Any:
    """Python's a + b."""
    return _combined(op.Add, a, b)


@translates("_operator::sub")
def sub(a: Any, b: Any) -> Any:
    """Python's a - b."""
    return _combined(op.Sub, a, b)


@translates("_operator::mul")
def mul(a: Any, b: Any) -> Any:
    """Python's a * b."""
    return _combined(op.Mul, a, b)


@translates("_operator::truediv")
def truediv(a: Any, b: Any) -> Any:
    """Python's a / b: a float."""
    return _single(op.Div(double(a), double(b)))


@translates("_operator::floordiv")
def floordiv(a: Any, b: Any) -> Any:
    """Python's a // b, which rounds toward minus infinity. ONNX's Div of ints rounds toward zero."""
    if _is_float(a) or _is_float(b):
        # NOTE: as Python does it: 1.2 // 0.1 is 11, although 1.2 / 0.1 is 12.
        return _single(op.Round(op.Div(op.Sub(double(a), _remainder(a, b)), double(b))))
    return op.Div(op.Sub(a, op.Mod(a, b)), b)


@translates("_operator::mod")
def mod(a: Any, b: Any) -> Any:
    """Python's a % b, which has the sign of the divisor. So has ONNX's Mod of ints."""
    return _single(_remainder(a, b)) if _is_float(a) or _is_float(b) else op.Mod(a, b)


@translates("_operator::pow")
def power(a: Any, b: Any) -> Any:
    """Python's a ** b."""
    return _combined(op.Pow, a, b)


@translates("_operator::neg")
def neg(a: Any) -> Any:
    """Python's -a."""
    return _single(op.Neg(double(a))) if _is_float(a) else op.Neg(a)


@translates("_operator::eq")
def eq(a: Any, b: Any) -> Any:
    """Python's a == b."""
    return _combined(op.Equal, a, b)


@translates("_operator::ne")
def ne(a: Any, b: Any) -> Any:
    """Python's a != b."""
    return op.Not(eq(a, b))


@translates("_operator::lt")
def lt(a: Any, b: Any) -> Any:
    """Python's a < b."""
    return _combined(op.Less, a, b)


@translates("_operator::le")
def le(a: Any, b: Any) -> Any:
    """Python's a <= b."""
    return _combined(op.LessOrEqual, a, b)


@translates("_operator::gt")
def gt(a: Any, b: Any) -> Any:
    """Python's a > b."""
    return _combined(op.Greater, a, b)


@translates("_operator::ge")
def ge(a: Any, b: Any) -> Any:
    """Python's a >= b."""
    return _combined(op.GreaterOrEqual, a, b)


@translates("torch::sym_sum")
def sym_sum(args: Any) -> Any:
    """Python's sum(args) of three or more sizes."""
    return functools.reduce(add, args)


@translates("torch::sym_max")
def sym_max(a: Any, b: Any) -> Any:
    """Python's max(a, b)."""
    return _combined(op.Max, a, b)


@translates("torch::sym_min")
def sym_min(a: Any, b: Any) -> Any:
    """Python's min(a, b)."""
    return _combined(op.Min, a, b)


@translates("torch::sym_not")
def sym_not(a: Any) -> Any:
    """Python's not a."""
    return op.Not(a)


@translates("torch::sym_ite")
def sym_ite(condition: Any, a: Any, b: Any) -> Any:
    """Python's a if condition else b."""
    return _combined(lambda a, b: op.Where(condition, a, b), a, b)


@translates("torch::sym_float")
def sym_float(a: Any) -> Any:
    """Python's float(a)."""
    return _single(double(a))


@translates("torch::sym_int", "math::trunc")
def sym_int(a: Any) -> Any:
    """Python's int(a), which rounds toward zero."""
    return op.Cast(double(a), to=int(_INT64))


@translates("math::floor")
def floor(a: Any) -> Any:
    """Python's math.floor(a): an int."""
    return op.Cast(op.Floor(double(a)), to=int(_INT64))


@translates("math::ceil")
def ceil(a: Any) -> Any:
    """Python's math.ceil(a): an int."""
    return op.Cast(op.Ceil(double(a)), to=int(_INT64))


@translates("builtins::round")
def round_to_even(a: Any, ndigits: int | None = None) -> Any:
    """Python's round(a): the nearest int, of two the even one."""
    if ndigits is not None:
        raise ValueError("ONNX cannot round a size to digits")
    return op.Cast(op.Round(double(a)), to=int(_INT64))


@translates("torch::_sym_sqrt")
def sqrt(a: Any) -> Any:
    """The square root torch.sym_sqrt(a): a float."""
    return _single(op.Sqrt(double(a)))


@translates("_operator::and_")
def bitwise_and(a: Any, b: Any) -> Any:
    """Python's a & b."""
    return op.And(a, b) if _is_bool(a) and _is_bool(b) else op.BitwiseAnd(a, b)


@translates("_operator::or_")
def bitwise_or(a: Any, b: Any) -> Any:
    """Python's a | b."""
    return op.Or(a, b) if _is_bool(a) and _is_bool(b) else op.BitwiseOr(a, b)


@translates("_operator::lshift")
def lshift(a: Any, b: Any) -> Any:
    """Python's a << b."""
    return op.Mul(a, _power_of_two(b))


@translates("_operator::rshift")
def rshift(a: Any, b: Any) -> Any:
    """Python's a >> b, which rounds toward minus infinity."""
    return floordiv(a, _power_of_two(b))


@translates("aten::item", "aten::_local_scalar_dense")
def local_scalar_dense(self: ir.Value) -> Any:
    """aten::item(Tensor self) -> Scalar. The number in a tensor with one element: an int, float or bool of Python."""
    assert self.dtype is not None
    number: Any = op.Reshape(self, op.Constant(value=ir.tensor([], dtype=_INT64)))
    if self.dtype.is_floating_point():
        return _single(double(number))
    return number if self.dtype is ir.DataType.BOOL else op.Cast(number, to=int(_INT64))


def _remainder(a: Any, b: Any) -> Any:
    """Python's a % b of floats, as a DOUBLE scalar. ONNX's Mod of floats has the sign of a."""
    divisor = double(b)
    rest = op.Mod(double(a), divisor, fmod=1)
    return op.Where(op.Less(op.Mul(op.Sign(rest), op.Sign(divisor)), 0.0), op.Add(rest, divisor), rest)


def _power_of_two(exponent: Any) -> Any:
    return 2**exponent if isinstance(exponent, int) else op.Pow(2, exponent)


def _is_bool(a: Any) -> bool:
    return a.dtype is ir.DataType.BOOL if isinstance(a, ir.Value) else isinstance(a, bool)


def _is_float(a: Any) -> bool:
    return a.dtype in (_FLOAT, _DOUBLE) if isinstance(a, ir.Value) else isinstance(a, float)


def _combined(operator: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """The result of `operator`, on floats if one operand is a float."""
    return _single(operator(double(a), double(b))) if _is_float(a) or _is_float(b) else operator(a, b)


def double(a: Any) -> Any:
    """A number, or a tensor, as DOUBLE."""
    if not isinstance(a, ir.Value):
        return op.Constant(value=ir.tensor(float(a), dtype=_DOUBLE))
    return op.Cast(a, to=int(_DOUBLE))


def _single(a: Any) -> Any:
    """A DOUBLE scalar rounded to FLOAT; other dtypes as they are."""
    if a.dtype is not _DOUBLE:
        return a
    rounded: Any = op.Cast(a, to=int(_FLOAT))
    if rounded.const_value is None:
        # NOTE: equal constants are one value, but two numbers may be rounded to the same one.
        rounded.meta[PRECISE] = a
    return rounded
