"""Complex tensors made of sizes and numbers. Without a dtype they are COMPLEX64, or like `self`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.ops import creation
from onnxplain.ops.casts import cast
from onnxplain.recording import op

from .representation import REAL_DTYPES, pair, real, translates_complex


@translates_complex("aten::full")
def full(size: Sequence[Any], fill_value: Any, dtype: int = -1) -> Any:
    """aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return op.Expand(_filler(fill_value, dtype), [*size, 2])


@translates_complex("aten::zeros", "aten::empty.memory_format")
def zeros(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`; aten::empty gets zeros as well."""
    return full(size, 0, dtype)


@translates_complex("aten::empty_permuted")
def empty_permuted(size: Sequence[Any], physical_layout: Sequence[int], dtype: int = -1) -> Any:
    """aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`; zeros."""
    del physical_layout
    return zeros(size, dtype)


@translates_complex("aten::ones")
def ones(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. Of shape `size`."""
    return full(size, 1, dtype)


@translates_complex("aten::new_full")
def new_full(self: ir.Value, size: Sequence[Any], fill_value: Any, dtype: int = -1) -> Any:
    """aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor.

    Of shape `size`, in the dtype of `self` or in `dtype`, which may be real.
    """
    return full(size, fill_value, _or_own(dtype, self)) if _is_complex(dtype) else creation.full(size, fill_value, dtype)


@translates_complex("aten::new_zeros", "aten::new_empty")
def new_zeros(self: ir.Value, size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. As `new_full`."""
    return new_full(self, size, 0, dtype)


@translates_complex("aten::new_ones")
def new_ones(self: ir.Value, size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor. As `new_full`."""
    return new_full(self, size, 1, dtype)


@translates_complex("aten::full_like")
def full_like(self: ir.Value, fill_value: Any, dtype: int = -1) -> Any:
    """aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor. In `dtype`, which may be real."""
    if _is_complex(dtype):
        return op.Expand(_filler(fill_value, _or_own(dtype, self)), op.Shape(self))
    return creation.full_like(real(self), fill_value, dtype)


@translates_complex("aten::zeros_like", "aten::empty_like")
def zeros_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::zeros_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor. As `full_like`."""
    return full_like(self, 0, dtype)


@translates_complex("aten::ones_like")
def ones_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::ones_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor. As `full_like`."""
    return full_like(self, 1, dtype)


@translates_complex("aten::scalar_tensor")
def scalar_tensor(s: Any, dtype: int = -1) -> Any:
    """aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, ...) -> Tensor. A scalar."""
    return _filler(s, dtype)


def _is_complex(dtype: int | None) -> bool:
    return dtype in (-1, None) or ir.DataType(dtype) in REAL_DTYPES


def _or_own(dtype: int | None, value: ir.Value) -> int:
    if dtype not in (-1, None):
        return int(dtype)
    return int(ir.DataType.COMPLEX128 if value.dtype is ir.DataType.DOUBLE else ir.DataType.COMPLEX64)


def _filler(number: Any, dtype: int | None) -> Any:
    """A number as a complex scalar, shape (2)."""
    kind = ir.DataType.FLOAT if dtype in (-1, None) else REAL_DTYPES[ir.DataType(dtype)]
    if isinstance(number, ir.Value):
        value = op.Unsqueeze(cast(number, int(kind)), [0])
        return pair(value, op.CastLike(op.Constant(value=ir.tensor(np.zeros(1, dtype=np.float32))), value))
    return op.Constant(value=ir.tensor(np.array([number.real, number.imag], dtype=kind.numpy())))
