"""Extrema and bitwise operators of two tensors, which broadcast to the shape of the result."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates


@translates("aten::__and__.Tensor", "aten::__and__.Scalar")
def bitwise_and(self: ir.Value, other: Any) -> Any:
    """aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor. Logical for BOOL."""
    return op.And(self, other) if self.dtype is ir.DataType.BOOL else op.BitwiseAnd(self, other)


@translates("aten::__or__.Tensor", "aten::__or__.Scalar")
def bitwise_or(self: ir.Value, other: Any) -> Any:
    """aten::__or__.Tensor(Tensor self, Tensor other) -> Tensor. Logical for BOOL."""
    return op.Or(self, other) if self.dtype is ir.DataType.BOOL else op.BitwiseOr(self, other)


@translates("aten::__xor__.Tensor", "aten::__xor__.Scalar")
def bitwise_xor(self: ir.Value, other: Any) -> Any:
    """aten::__xor__.Tensor(Tensor self, Tensor other) -> Tensor. Logical for BOOL."""
    return op.Xor(self, other) if self.dtype is ir.DataType.BOOL else op.BitwiseXor(self, other)


@translates("aten::min.other")
def minimum(self: ir.Value, other: ir.Value) -> Any:
    """aten::min.other(Tensor self, Tensor other) -> Tensor."""
    return op.Min(self, other)


@translates("aten::max.other")
def maximum(self: ir.Value, other: ir.Value) -> Any:
    """aten::max.other(Tensor self, Tensor other) -> Tensor."""
    return op.Max(self, other)
