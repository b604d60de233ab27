"""Running sums, products and extrema along a dim. The results have the shape of `self`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast
from .loops import scan


@translates("aten::cumsum")
def cumsum(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor. In `dtype` if it is given."""
    assert self.shape is not None
    value = cast(self, dtype)
    return op.CumSum(value, dim) if self.shape else value


@translates("aten::cumprod")
def cumprod(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor. In `dtype` if it is given.

    It becomes a Scan, as ONNX has no operator for it before opset 26.
    """
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


@translates("aten::cummax")
def cummax(self: ir.Value, dim: int) -> Any:
    """aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices).

    The largest element so far and its last position (INT64). A NaN is the largest from then on.
    """
    return _running(self, dim, "GreaterOrEqual")


@translates("aten::cummin")
def cummin(self: ir.Value, dim: int) -> Any:
    """aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices).

    The smallest element so far and its last position (INT64). A NaN is the smallest from then on.
    """
    return _running(self, dim, "LessOrEqual")


def _running(value: ir.Value, dim: int, name: str) -> Any:
    assert value.shape is not None
    assert value.dtype is not None
    if not value.shape:
        return [value, op.Constant(value=ir.tensor(np.array(0)))]
    axis, wide = dim % len(value.shape), value
    if value.dtype is ir.DataType.BOOL:
        wide = op.Cast(value, to=int(ir.DataType.INT32))

    def step(best: Any, position: Any, next_position: Any, each: Any) -> tuple[list[Any], list[Any]]:
        better = getattr(op, name)(each, best)
        if value.dtype is not None and value.dtype.is_floating_point():
            better = op.Or(better, op.IsNaN(each))
        best, position = op.Where(better, each, best), op.Where(better, next_position, position)
        return [best, position, op.Add(next_position, 1)], [best, position]

    first = op.Gather(wide, 0, axis=axis)
    start = op.Mul(op.Cast(first, to=int(ir.DataType.INT64)), 0) if not value.dtype.is_floating_point() else _zeros_like(first)
    results = scan(step, [first, start, op.Constant(value=ir.tensor(np.array(0)))], [wide], axis)
    best, positions = results[-2:]
    return [op.Cast(best, to=int(value.dtype)) if wide is not value else best, positions]


def _zeros_like(value: Any) -> Any:
    return op.Expand(op.Constant(value=ir.tensor(np.array(0))), op.Shape(value))


@translates("aten::logcumsumexp")
def logcumsumexp(self: ir.Value, dim: int) -> Any:
    """aten::logcumsumexp(Tensor self, int dim) -> Tensor: the logarithm of the running sum of exponentials."""
    assert self.shape is not None
    if not self.shape:
        return self
    axis = dim % len(self.shape)

    def step(total: Any, each: Any) -> tuple[list[Any], list[Any]]:
        # NOTE: the difference of two infinities is NaN.
        gap = op.Where(op.Equal(total, each), op.CastLike(0.0, each), op.Abs(op.Sub(total, each)))
        total = op.Add(op.Max(total, each), op.Log(op.Add(op.Exp(op.Neg(gap)), 1.0)))
        return [total], [total]

    shape = op.Shape(op.Gather(self, 0, axis=axis))
    return scan(step, [op.Expand(op.CastLike(float("-inf"), self), shape)], [self], axis)[-1]
