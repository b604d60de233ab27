"""Sums, means and softmax along dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast
from .order import scan


@translates("aten::mean.dim", "aten::mean")
def mean(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::mean.dim(Tensor self, int[1]? dim, bool keepdim, *, ScalarType? dtype)."""
    return _reduced("ReduceMean", self, dim, keepdim, dtype)


@translates("aten::sum.dim_IntList", "aten::sum")
def sum_(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim, *, ScalarType? dtype)."""
    return _reduced("ReduceSum", self, dim, keepdim, dtype)


def _reduced(name: str, value: ir.Value, dim: Sequence[int] | None, keepdim: bool, dtype: int) -> Any:
    """No dims are all dims, in PyTorch as in ONNX. The dtype is that of the computation, too."""
    assert value.shape is not None
    value = cast(value, dtype)
    if not value.shape:
        return value
    return getattr(op, name)(value, list(dim) if dim else None, keepdims=int(keepdim))


@translates("aten::softmax.int", "aten::special_softmax")
def softmax(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::softmax.int(Tensor self, int dim, ScalarType? dtype)."""
    return _along(op.Softmax, self, dim, dtype)


@translates("aten::log_softmax.int", "aten::special_log_softmax")
def log_softmax(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype)."""
    return _along(op.LogSoftmax, self, dim, dtype)


@translates("aten::_softmax")
def core_softmax(self: ir.Value, dim: int, half_to_float: bool) -> Any:
    """aten::_softmax(Tensor self, int dim, bool half_to_float)."""
    return _along(op.Softmax, self, dim, int(ir.DataType.FLOAT) if half_to_float else -1)


@translates("aten::_log_softmax")
def core_log_softmax(self: ir.Value, dim: int, half_to_float: bool) -> Any:
    """aten::_log_softmax(Tensor self, int dim, bool half_to_float)."""
    return _along(op.LogSoftmax, self, dim, int(ir.DataType.FLOAT) if half_to_float else -1)


def _along(operator: Any, value: ir.Value, dim: int, dtype: int) -> Any:
    """A scalar is one element along its only dim. The dtype is that of the computation, too."""
    assert value.shape is not None
    scalar = not value.shape
    value = cast(value, dtype)
    return op.Squeeze(operator(op.Unsqueeze(value, [0]), axis=0)) if scalar else operator(value, axis=dim)


@translates("aten::cumsum")
def cumsum(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumsum(Tensor self, int dim, *, ScalarType? dtype)."""
    assert self.shape is not None
    value = cast(self, dtype)
    return op.CumSum(value, dim) if self.shape else value


@translates("aten::cumprod")
def cumprod(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumprod(Tensor self, int dim, *, ScalarType? dtype): a Scan, as ONNX has no operator for it before opset 26."""
    assert self.shape is not None
    value = cast(self, dtype)
    if not self.shape:
        return value
    axis = dim % len(self.shape)
    rest = [each for each in range(len(self.shape)) if each != axis]
    first = op.Expand(op.CastLike(1, value), op.Gather(op.Shape(value), rest)) if rest else op.CastLike(1, value)

    def step(product: Any, factor: Any) -> tuple[list[Any], list[Any]]:
        product = op.Mul(product, factor)
        return [product], [product]

    return scan(step, [first], [value], axis)[-1]
