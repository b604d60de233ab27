"""Comparisons, extrema and bitwise operators."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates


@translates("aten::__and__.Tensor", "aten::__and__.Scalar", "aten::__iand__.Tensor")
def bitwise_and(self: ir.Value, other: Any) -> Any:
    """aten::__and__.Tensor(Tensor self, Tensor other)."""
    return op.And(self, other) if self.dtype is ir.DataType.BOOL else op.BitwiseAnd(self, other)


@translates("aten::__or__.Tensor", "aten::__or__.Scalar", "aten::__ior__.Tensor")
def bitwise_or(self: ir.Value, other: Any) -> Any:
    """aten::__or__.Tensor(Tensor self, Tensor other)."""
    return op.Or(self, other) if self.dtype is ir.DataType.BOOL else op.BitwiseOr(self, other)


@translates("aten::__xor__.Tensor", "aten::__xor__.Scalar", "aten::__ixor__.Tensor")
def bitwise_xor(self: ir.Value, other: Any) -> Any:
    """aten::__xor__.Tensor(Tensor self, Tensor other)."""
    return op.Xor(self, other) if self.dtype is ir.DataType.BOOL else op.BitwiseXor(self, other)


@translates("aten::min.other")
def minimum(self: ir.Value, other: ir.Value) -> Any:
    """aten::min.other(Tensor self, Tensor other)."""
    return op.Min(self, other)


@translates("aten::max.other")
def maximum(self: ir.Value, other: ir.Value) -> Any:
    """aten::max.other(Tensor self, Tensor other)."""
    return op.Max(self, other)
