"""Arithmetic with sizes: Python's operators on symbolic ints, floats and bools, as ONNX scalars (INT64, FLOAT, BOOL).

An int and a float give a float; comparisons give a bool.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import VECTOR, op

from . import translates

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})


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
    return op.Add(*_same_dtype(a, b))


@translates("_operator::sub")
def sub(a: Any, b: Any) -> Any:
    """Python's a - b."""
    return op.Sub(*_same_dtype(a, b))


@translates("_operator::mul")
def mul(a: Any, b: Any) -> Any:
    """Python's a * b."""
    return op.Mul(*_same_dtype(a, b))


@translates("_operator::truediv")
def truediv(a: Any, b: Any) -> Any:
    """Python's a / b: a float."""
    return op.Div(_float(a), _float(b))


@translates("_operator::floordiv")
def floordiv(a: Any, b: Any) -> Any:
    """Python's a // b, which rounds toward minus infinity. ONNX's Div of ints rounds toward zero."""
    a, b = _same_dtype(a, b)
    if _dtype(a) in _FLOATS or _dtype(b) in _FLOATS:
        return op.Floor(op.Div(a, b))
    return op.Div(op.Sub(a, op.Mod(a, b)), b)


@translates("_operator::mod")
def mod(a: Any, b: Any) -> Any:
    """Python's a % b for ints. ONNX's Mod has the sign of the divisor as well."""
    return op.Mod(a, b)


@translates("_operator::pow")
def power(a: Any, b: Any) -> Any:
    """Python's a ** b."""
    return op.Pow(a, b)


@translates("_operator::neg")
def neg(a: Any) -> Any:
    """Python's -a."""
    return op.Neg(a)


@translates("_operator::eq")
def eq(a: Any, b: Any) -> Any:
    """Python's a == b."""
    return op.Equal(*_same_dtype(a, b))


@translates("_operator::ne")
def ne(a: Any, b: Any) -> Any:
    """Python's a != b."""
    return op.Not(op.Equal(*_same_dtype(a, b)))


@translates("_operator::lt")
def lt(a: Any, b: Any) -> Any:
    """Python's a < b."""
    return op.Less(*_same_dtype(a, b))


@translates("_operator::le")
def le(a: Any, b: Any) -> Any:
    """Python's a <= b."""
    return op.LessOrEqual(*_same_dtype(a, b))


@translates("_operator::gt")
def gt(a: Any, b: Any) -> Any:
    """Python's a > b."""
    return op.Greater(*_same_dtype(a, b))


@translates("_operator::ge")
def ge(a: Any, b: Any) -> Any:
    """Python's a >= b."""
    return op.GreaterOrEqual(*_same_dtype(a, b))


@translates("torch::sym_max")
def sym_max(a: Any, b: Any) -> Any:
    """Python's max(a, b)."""
    return op.Max(*_same_dtype(a, b))


@translates("torch::sym_min")
def sym_min(a: Any, b: Any) -> Any:
    """Python's min(a, b)."""
    return op.Min(*_same_dtype(a, b))


@translates("torch::sym_not")
def sym_not(a: Any) -> Any:
    """Python's not a."""
    return op.Not(a)


@translates("torch::sym_ite")
def sym_ite(condition: Any, a: Any, b: Any) -> Any:
    """Python's a if condition else b."""
    return op.Where(condition, *_same_dtype(a, b))


@translates("torch::sym_float")
def sym_float(a: Any) -> Any:
    """Python's float(a)."""
    return _float(a)


@translates("torch::sym_int", "math::trunc")
def sym_int(a: Any) -> Any:
    """Python's int(a), which rounds toward zero."""
    return op.Cast(a, to=int(ir.DataType.INT64))


@translates("math::floor")
def floor(a: Any) -> Any:
    """Python's math.floor(a): an int."""
    return op.Cast(op.Floor(_float(a)), to=int(ir.DataType.INT64))


@translates("math::ceil")
def ceil(a: Any) -> Any:
    """Python's math.ceil(a): an int."""
    return op.Cast(op.Ceil(_float(a)), to=int(ir.DataType.INT64))


@translates("torch::_sym_sqrt")
def sqrt(a: Any) -> Any:
    """The square root torch.sym_sqrt(a): a float."""
    return op.Sqrt(_float(a))


def _dtype(a: Any) -> ir.DataType | None:
    if isinstance(a, ir.Value):
        return a.dtype
    return {bool: ir.DataType.BOOL, int: ir.DataType.INT64, float: ir.DataType.FLOAT}.get(type(a))


def _float(a: Any) -> Any:
    if isinstance(a, ir.Value):
        return a if a.dtype in _FLOATS else op.Cast(a, to=int(ir.DataType.FLOAT))
    return float(a)


def _same_dtype(a: Any, b: Any) -> tuple[Any, Any]:
    """Both as floats if one is a float."""
    return (_float(a), _float(b)) if {_dtype(a), _dtype(b)} & _FLOATS else (a, b)
