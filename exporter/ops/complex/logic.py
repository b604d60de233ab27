"""Comparisons of complex tensors, and choices between them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from .representation import equal, make, number, operands, parts, translates_complex, without_last, zero


@translates_complex("aten::eq.Tensor", "aten::eq.Scalar")
def eq(self: Any, other: Any) -> Any:
    """aten::eq.Tensor(Tensor self, Tensor other) -> Tensor. BOOL, of the shape that both broadcast to."""
    return equal(*operands(self, other))


@translates_complex("aten::ne.Tensor", "aten::ne.Scalar")
def ne(self: Any, other: Any) -> Any:
    """aten::ne.Tensor(Tensor self, Tensor other) -> Tensor. BOOL, of the shape that both broadcast to."""
    return op.Not(eq(self, other))


@translates_complex("aten::logical_not")
def logical_not(self: ir.Value) -> Any:
    """aten::logical_not(Tensor self) -> Tensor. BOOL, of the same shape."""
    return eq(self, 0)


@translates_complex("aten::isnan")
def isnan(self: ir.Value) -> Any:
    """aten::isnan(Tensor self) -> Tensor. Whether one of the parts is NaN: BOOL, of the same shape."""
    return op.Or(*map(without_last, parts(op.IsNaN(self))))


@translates_complex("aten::isfinite")
def isfinite(self: ir.Value) -> Any:
    """aten::isfinite(Tensor self) -> Tensor. Whether both parts are finite: BOOL, of the same shape."""
    return op.Not(op.Or(*map(without_last, parts(op.Or(op.IsNaN(self), op.IsInf(self))))))


@translates_complex("aten::where.self", "aten::where.ScalarOther", "aten::where.ScalarSelf", "aten::where.Scalar")
def where(condition: ir.Value, self: Any, other: Any) -> Any:
    """aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor. Of the shape that all three broadcast to.

    Two numbers give COMPLEX64.
    """
    if not isinstance(self, ir.Value) and not isinstance(other, ir.Value):
        other = number(other, op.Constant(value_float=0.0))
    return op.Where(op.Unsqueeze(condition, [-1]), *operands(self, other))


@translates_complex("aten::masked_fill.Scalar", "aten::masked_fill.Tensor")
def masked_fill(self: ir.Value, mask: ir.Value, value: Any) -> Any:
    """aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor. Of the shape that `self` and `mask` broadcast to."""
    if isinstance(value, ir.Value) and not value.shape:
        # NOTE: a real scalar; a complex one has shape (2).
        value = make(value, zero(value))
    return op.Where(op.Unsqueeze(mask, [-1]), number(value, self), self)
