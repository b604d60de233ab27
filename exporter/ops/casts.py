"""Dtype and device: a cast where the dtype changes, nothing elsewhere."""

from __future__ import annotations

import functools
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates


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


@translates("aten::view.dtype")
def view_dtype(self: ir.Value, dtype: int) -> Any:
    """aten::view.dtype(Tensor self, ScalarType dtype) -> Tensor. The same bytes, read as another dtype; the last dim has as many as before.

    Between whole numbers and floats, ONNX has an operator from opset 26 on.
    """
    old, new = self.dtype, ir.DataType(dtype)
    assert old is not None
    if old is new:
        return self
    width, wanted = old.bitwidth // 8, new.bitwidth // 8
    if width == wanted:
        return _bits(self, new)
    number = _bits(self, _INTEGERS[width])
    number = _parts(number, width, wanted) if width > wanted else _joined(number, width, wanted)
    return _bits(number, new)


_INTEGERS = {1: ir.DataType.UINT8, 2: ir.DataType.UINT16, 4: ir.DataType.UINT32, 8: ir.DataType.UINT64}
"""By the number of bytes."""


def _bits(value: Any, dtype: ir.DataType) -> Any:
    """The bits of `value` as a dtype of the same width. A Cast keeps those of whole numbers and bools."""
    if not value.dtype.is_floating_point() and not dtype.is_floating_point():
        return cast(value, int(dtype))
    return emit("BitCast", [value], {"to": int(dtype)}, outputs=1, opset=26)[0]


def _parts(value: Any, width: int, narrow: int) -> Any:
    """Whole numbers of `width` bytes as several of `narrow` bytes each, the lowest first."""
    shifts = ir.tensor(range(0, 8 * width, 8 * narrow), dtype=ir.DataType.UINT64)
    shifted = op.BitShift(op.Unsqueeze(cast(value, int(ir.DataType.UINT64)), [-1]), op.Constant(value=shifts), direction="RIGHT")
    last = op.Mul(op.Shape(value, start=-1), width // narrow)
    return op.Reshape(op.Cast(shifted, to=int(_INTEGERS[narrow])), op.Concat(op.Shape(value, end=-1), last, axis=0), allowzero=1)


def _joined(value: Any, narrow: int, width: int) -> Any:
    """The inverse of `_parts`."""
    last = op.Div(op.Shape(value, start=-1), width // narrow)
    rows = op.Reshape(value, op.Concat(op.Shape(value, end=-1), last, [width // narrow], axis=0), allowzero=1)
    parts = [op.Gather(op.Cast(rows, to=int(ir.DataType.INT64)), index, axis=-1) for index in range(width // narrow)]
    # NOTE: ONNX Runtime sums along a dim as floats (seen in 1.31).
    whole = functools.reduce(op.Add, (op.Mul(part, 1 << (8 * narrow * index)) for index, part in enumerate(parts)))
    return op.Cast(whole, to=int(_INTEGERS[width]))


def cast(value: ir.Value, dtype: int | None) -> ir.Value:
    """`value` in an ONNX dtype; -1 and None keep its dtype."""
    # NOTE: torch.vmap casts Python numbers, which an operator gets beside a tensor.
    if dtype is None or dtype == -1 or getattr(value, "dtype", None) == dtype:
        return value
    made: Any = op.Cast(value, to=dtype)
    return made  # type: ignore[no-any-return]  # onnxscript's operators are untyped
