"""Dtype and device: a cast where the dtype changes, nothing elsewhere."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates


@translates("aten::to.dtype", "aten::_to_copy", "prims::convert_element_type")
def to_dtype(self: ir.Value, dtype: int = -1) -> ir.Value:
    """aten::to.dtype(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, ...) -> Tensor. In `dtype`."""
    return cast(self, dtype)


@translates("aten::to.dtype_layout")
def to_dtype_layout(self: ir.Value, *, dtype: int = -1) -> ir.Value:
    """aten::to.dtype_layout(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, ...) -> Tensor. In `dtype` if it is given."""
    return cast(self, dtype)


@translates("aten::to.device")
def to_device(self: ir.Value, device: str, dtype: int) -> ir.Value:
    """aten::to.device(Tensor self, Device device, ScalarType dtype, ...) -> Tensor. In `dtype`."""
    del device
    return cast(self, dtype)


@translates("aten::to.other", "aten::type_as")
def to_other(self: ir.Value, other: ir.Value) -> ir.Value:
    """aten::to.other(Tensor self, Tensor other, ...) -> Tensor. In the dtype of `other`."""
    return self if other.dtype is None else cast(self, int(other.dtype))


@translates(
    "aten::detach",
    "aten::detach_copy",
    "aten::alias",
    "aten::lift_fresh_copy",
    "aten::lift_fresh",
    "aten::contiguous",
    "aten::clone",
    is_complex=None,
)
def same(self: ir.Value) -> ir.Value:
    """aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor. Values in a graph have no memory to copy or share."""
    return self


@translates(
    *("aten::to_sparse", "aten::_to_sparse", "aten::to_sparse_csr", "aten::_to_sparse_csr", "aten::coalesce", "aten::_coalesce"),
    is_complex=None,
)
def to_sparse(self: ir.Value) -> ir.Value:
    """aten::to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor.

    The dense tensor: sparse tensors are dense in the ONNX graph.
    """
    return self


@translates("aten::to_dense", "aten::_to_dense")
def to_dense(self: ir.Value, dtype: int = -1) -> ir.Value:
    """aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor. In `dtype` if it is given."""
    return cast(self, dtype)


@translates("aten::copy")
def copy(self: ir.Value, src: ir.Value) -> Any:
    """aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor. `src` with the dtype and shape of `self`."""
    source = cast(src, None if self.dtype is None else int(self.dtype))
    return source if source.shape is not None and source.shape == self.shape else op.Expand(source, op.Shape(self))


def cast(value: ir.Value, dtype: int | None) -> ir.Value:
    """`value` in an ONNX dtype; -1 and None keep its dtype."""
    # NOTE: torch.vmap casts Python numbers, which an operator gets beside a tensor.
    if dtype is None or dtype == -1 or getattr(value, "dtype", None) == dtype:
        return value
    made: Any = op.Cast(value, to=dtype)
    return made  # type: ignore[no-any-return]  # onnxscript's operators are untyped
