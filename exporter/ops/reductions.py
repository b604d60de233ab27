"""Sums, means and softmax along dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast


@translates("aten::mean.dim", "aten::mean")
def mean(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Without the dims, or with size 1 for them where `keepdim` is true; in `dtype` if it is given.
    """
    return _reduced("ReduceMean", self, dim, keepdim, dtype)


@translates("aten::sum.dim_IntList", "aten::sum")
def sum_(self: ir.Value, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor.

    Without the dims, or with size 1 for them where `keepdim` is true; in `dtype` if it is given.
    """
    return _reduced("ReduceSum", self, dim, keepdim, dtype)


def _reduced(name: str, value: ir.Value, dim: Sequence[int] | None, keepdim: bool, dtype: int) -> Any:
    """No dims stand for all dims, in PyTorch as in ONNX. PyTorch computes in the dtype of the result."""
    assert value.shape is not None
    value = cast(value, dtype)
    if not value.shape:
        return value
    return getattr(op, name)(value, list(dim) if dim else None, keepdims=int(keepdim))


@translates("aten::softmax.int", "aten::special_softmax")
def softmax(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor. In `dtype` if it is given."""
    return _along(op.Softmax, self, dim, dtype)


@translates("aten::log_softmax.int", "aten::special_log_softmax")
def log_softmax(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor. In `dtype` if it is given."""
    return _along(op.LogSoftmax, self, dim, dtype)


@translates("aten::_softmax")
def core_softmax(self: ir.Value, dim: int, half_to_float: bool) -> Any:
    """aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor. FLOAT if `half_to_float`."""
    return _along(op.Softmax, self, dim, int(ir.DataType.FLOAT) if half_to_float else -1)


@translates("aten::_log_softmax")
def core_log_softmax(self: ir.Value, dim: int, half_to_float: bool) -> Any:
    """aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor. FLOAT if `half_to_float`."""
    return _along(op.LogSoftmax, self, dim, int(ir.DataType.FLOAT) if half_to_float else -1)


def _along(operator: Any, value: ir.Value, dim: int, dtype: int) -> Any:
    """PyTorch lets a scalar have one dim, and computes in the dtype of the result."""
    assert value.shape is not None
    scalar = not value.shape
    value = cast(value, dtype)
    return op.Squeeze(operator(op.Unsqueeze(value, [0]), axis=0)) if scalar else operator(value, axis=dim)
