"""Tensors made of sizes and numbers. Without a dtype they are FLOAT, INT64 or BOOL, as the numbers are, or like `self`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast

_FLOAT, _DOUBLE, _INT64, _BOOL = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.BOOL


@translates("aten::arange")
def arange(end: Any, dtype: int = -1) -> Any:
    """aten::arange(Scalar end, *, ScalarType? dtype=None, ...) -> Tensor: (ceil(end)), from 0."""
    return arange_start_step(0, end, 1, dtype)


@translates("aten::arange.start")
def arange_start(start: Any, end: Any, dtype: int = -1) -> Any:
    """aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, ...) -> Tensor: (ceil(end - start))."""
    return arange_start_step(start, end, 1, dtype)


@translates("aten::arange.start_step")
def arange_start_step(start: Any, end: Any, step: Any = 1, dtype: int = -1) -> Any:
    """aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, ...) -> Tensor.

    start + i * step for i below ceil((end - start) / step).
    """
    start, end, step = (int(each) if isinstance(each, bool) else each for each in (start, end, step))
    if dtype == _INT64:
        # NOTE: PyTorch truncates the numbers before it counts.
        start, end, step = (_as_int(each) for each in (start, end, step))
    if all(map(_is_int, (start, end, step))):
        if isinstance(start, int) and isinstance(step, int) and start >= 0 and step > 0:
            return cast(op.Range(start, end, step), dtype)
        # NOTE: ONNX Runtime 1.31 turns a Gather by a Range into a Slice, where a negative end counts from the last element.
        return cast(op.Add(op.Range(0, op.Sub(end, start), step), start), dtype)
    count = op.Cast(op.Ceil(op.Div(op.Sub(_as_double(end), _as_double(start)), _as_double(step))), to=int(_INT64))
    kind = _FLOAT if dtype in (-1, None) else ir.DataType(dtype)
    # NOTE: small dtypes are counted in a larger one, as in PyTorch.
    exact, convert = (_DOUBLE, _as_double) if kind.is_floating_point() else (_INT64, _as_int)
    index = op.Cast(op.Range(0, count, 1), to=int(exact))
    return cast(op.Add(op.Mul(index, convert(step)), convert(start)), int(kind))


@translates("aten::hamming_window")
def hamming_window(window_length: int, dtype: int = -1) -> Any:
    """aten::hamming_window(int window_length, *, ScalarType? dtype=None, ...) -> Tensor: (window_length). One period.

    0.54 - 0.46 * cos(2 * pi * i / window_length). The coefficients of ONNX's own operator are 25/46 and 21/46.
    """
    if window_length == 1:
        return full([1], 1.0, dtype)
    angles = op.Mul(_as_double(op.Range(0, window_length, 1)), 2 * math.pi / max(window_length, 1))
    return cast(op.Sub(0.54, op.Mul(0.46, op.Cos(angles))), int(_FLOAT) if dtype in (-1, None) else dtype)


@translates("aten::full")
def full(size: Sequence[Any], fill_value: Any, dtype: int = -1) -> Any:
    """aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return op.Expand(_scalar(fill_value, dtype), list(size))


@translates("aten::zeros", "aten::empty.memory_format")
def zeros(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`; aten::empty gets zeros as well."""
    return full(size, 0.0, dtype)


@translates("aten::empty_permuted")
def empty_permuted(size: Sequence[Any], physical_layout: Sequence[int], dtype: int = -1) -> Any:
    """aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`; zeros."""
    del physical_layout
    return zeros(size, dtype)


@translates("aten::ones")
def ones(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return full(size, 1.0, dtype)


@translates("aten::new_full")
def new_full(self: ir.Value, size: Sequence[Any], fill_value: Any, dtype: int = -1) -> Any:
    """aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return full(size, fill_value, _or_own(dtype, self))


@translates("aten::new_zeros", "aten::new_empty")
def new_zeros(self: ir.Value, size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return full(size, 0, _or_own(dtype, self))


@translates("aten::new_ones")
def new_ones(self: ir.Value, size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return full(size, 1, _or_own(dtype, self))


@translates("aten::full_like")
def full_like(self: ir.Value, fill_value: Any, dtype: int = -1) -> Any:
    """aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor. In `dtype` if it is given."""
    return op.Expand(_scalar(fill_value, _or_own(dtype, self)), op.Shape(self))


@translates("aten::zeros_like", "aten::empty_like")
def zeros_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::zeros_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor. In `dtype` if it is given."""
    return full_like(self, 0, dtype)


@translates("aten::ones_like")
def ones_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::ones_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor. In `dtype` if it is given."""
    return full_like(self, 1, dtype)


def _or_own(dtype: int | None, value: ir.Value) -> int:
    if dtype not in (-1, None):
        return int(dtype)
    return -1 if value.dtype is None else int(value.dtype)


def _scalar(value: Any, dtype: int | None) -> Any:
    if isinstance(value, ir.Value):
        return cast(value, dtype)
    default = _BOOL if isinstance(value, bool) else _INT64 if isinstance(value, int) else _FLOAT
    wanted = default if dtype in (-1, None) else ir.DataType(dtype)
    if isinstance(value, int) and wanted.is_integer():
        # NOTE: PyTorch drops the bits that do not fit.
        value = np.int64(value).astype(wanted.numpy())
    return op.Constant(value=ir.tensor(value, dtype=wanted)) if wanted is not _BOOL else op.Constant(value=ir.tensor(bool(value)))


def _is_int(value: Any) -> bool:
    return value.dtype.is_integer() if isinstance(value, ir.Value) and value.dtype is not None else isinstance(value, int)


def _as_int(value: Any) -> Any:
    return cast(value, int(_INT64)) if isinstance(value, ir.Value) else math.trunc(value)


def _as_double(value: Any) -> Any:
    return cast(value, int(_DOUBLE)) if isinstance(value, ir.Value) else op.Constant(value=ir.tensor(float(value), dtype=_DOUBLE))
