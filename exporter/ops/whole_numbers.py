"""Arithmetic of whole numbers that a detour through floats would round: powers, quotients, remainders and shifts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import elementwise, translates

_UINT64 = ir.DataType.UINT64


@translates("aten::pow.Scalar")
def power_of_number(self: Any, exponent: ir.Value) -> Any:
    """aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor."""
    # NOTE: the result of ONNX's Pow has the dtype of the base, which is the dtype of PyTorch's result, as that of the exponent is here.
    return op.Pow(self, exponent) if exponent.dtype is None else power(_as(self, exponent.dtype), exponent)


@translates("aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor")
def power(self: Any, exponent: Any) -> Any:
    """aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor."""
    if isinstance(exponent, bool | int) and 0 <= exponent <= 3:
        return op.Pow(self, int(exponent))
    dtype = _dtype(self, exponent)
    if dtype is None or not dtype.is_integer():
        return op.Pow(self, exponent)
    if isinstance(exponent, int):
        root = op.Pow(self, exponent // 2)
        square = op.Mul(root, root)
        return op.Mul(square, self) if exponent % 2 else square
    return _whole_power(_as(self, dtype), exponent)


def _whole_power(base: Any, exponent: Any) -> Any:
    """A power as the square of another, because ONNX Runtime computes it as a float (seen in 1.31): exact to 2**53 only.

    Of the powers with a negative exponent, those of 1 and -1 are not rounded to 0.
    """
    root = op.Pow(base, op.Div(op.Max(exponent, 0), 2))
    is_odd = op.Equal(op.Mod(exponent, 2), 1)
    whole = op.Mul(op.Mul(root, root), op.Where(is_odd, base, 1))
    if not exponent.dtype.is_signed():
        return whole
    one = op.Where(op.Equal(op.Abs(base), 1), op.Where(is_odd, base, 1), 0)
    return op.Where(op.Less(exponent, 0), one, whole)


@translates("aten::div.Tensor_mode", "aten::div.Scalar_mode", "aten::divide.Tensor_mode", "aten::divide.Scalar_mode")
def divided(self: Any, other: Any, *, rounding_mode: str | None) -> Any:
    """aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor. Rounded down, toward zero, or not at all."""
    if rounding_mode == "floor":
        return elementwise.floor_divide(self, other)
    quotient = op.Div(self, other)
    return elementwise.trunc(quotient) if rounding_mode == "trunc" else quotient


@translates("aten::fmod.Tensor", "aten::fmod.Scalar")
def fmod(self: Any, other: Any) -> Any:
    """aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor. It has the sign of `self`."""
    dtype = _dtype(self, other)
    if dtype is None or not dtype.is_integer():
        return op.Mod(self, other, fmod=1)
    # NOTE: with `fmod`, ONNX Runtime computes whole numbers as floats (seen in 1.31).
    return op.Sub(self, op.Mul(op.Div(self, other), other))


@translates(
    *("aten::bitwise_left_shift.Tensor", "aten::bitwise_left_shift.Tensor_Scalar", "aten::bitwise_left_shift.Scalar_Tensor"),
    *("aten::__lshift__.Tensor", "aten::__lshift__.Scalar"),
)
def left_shift(self: Any, other: Any) -> Any:
    """aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor. 0 where more bits are asked for than there are."""
    dtype = _dtype(self, other)
    assert dtype is not None
    shifted = op.Cast(op.BitShift(_as(self, _UINT64), _as(other, _UINT64), direction="LEFT"), to=int(dtype))
    return shifted if _fits(other, dtype.bitwidth) else op.Where(_is_within(other, dtype, dtype.bitwidth), shifted, op.CastLike(0, shifted))


@translates(
    *("aten::bitwise_right_shift.Tensor", "aten::bitwise_right_shift.Tensor_Scalar", "aten::bitwise_right_shift.Scalar_Tensor"),
    *("aten::__rshift__.Tensor", "aten::__rshift__.Scalar"),
)
def right_shift(self: Any, other: Any) -> Any:
    """aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor. Rounded down; by all bits where more are asked for."""
    dtype = _dtype(self, other)
    assert dtype is not None
    value, most = _as(self, dtype), dtype.bitwidth - dtype.is_signed()
    if not _fits(other, most):
        other = op.Where(_is_within(other, dtype, most), _as(other, dtype), op.Constant(value=ir.tensor(most, dtype=dtype)))
    # NOTE: ONNX shifts no signed numbers. The bits of a negative one are turned before and after.
    turns = op.Where(op.Less(value, op.CastLike(0, value)), op.CastLike(-1, value), op.CastLike(0, value)) if dtype.is_signed() else None
    bits = value if turns is None else op.BitwiseXor(value, turns)
    shifted = op.Cast(op.BitShift(_as(bits, _UINT64), _as(other, _UINT64), direction="RIGHT"), to=int(dtype))
    return shifted if turns is None else op.BitwiseXor(shifted, turns)


def _fits(shift: Any, bits: int) -> bool:
    return isinstance(shift, int) and 0 <= shift < bits


def _is_within(shift: Any, dtype: ir.DataType, bits: int) -> Any:
    number = _as(shift, dtype)
    return op.And(op.GreaterOrEqual(number, op.CastLike(0, number)), op.Less(number, op.CastLike(bits, number)))


def _as(value: Any, dtype: ir.DataType) -> Any:
    if not isinstance(value, ir.Value):
        # NOTE: a number that the dtype cannot hold wraps around, as in PyTorch.
        return op.Constant(value=ir.Tensor(np.asarray(value).astype(dtype.numpy()), dtype=dtype))
    return value if value.dtype is dtype else op.Cast(value, to=int(dtype))


def _dtype(*operands: Any) -> ir.DataType | None:
    return next((each.dtype for each in operands if isinstance(each, ir.Value)), None)
