"""Distinct elements."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates

_INT32, _INT64 = int(ir.DataType.INT32), int(ir.DataType.INT64)


@translates("aten::_unique2")
def unique2(self: ir.Value, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor).

    The distinct elements (N) in ascending order; in the shape of `self` the position of each element among them (INT64); how often each of
    them occurs (N, INT64). The last two are empty unless asked for. Each NaN counts as a distinct element and comes last.
    """
    del sorted
    flat = op.Reshape(self, [-1])
    if self.dtype is not None and self.dtype.is_floating_point():
        values, positions, counts = _with_nan(flat, self, return_inverse)
    else:
        values, positions, counts = _distinct(flat)
    inverse = op.Reshape(positions, op.Shape(self), allowzero=1) if return_inverse else _nothing()
    return [values, inverse, counts if return_counts else _nothing()]


@translates("aten::unique_consecutive")
def unique_consecutive(self: ir.Value, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor[3].

    The elements that differ from the one before: (N), or the parts along `dim` that do, with size N there. The position of each element (in
    the shape of `self`) or part (a vector) among them, and how many each of them stands for (N): both INT64, empty unless asked for.
    """
    assert self.shape is not None
    axis = 0 if dim is None or not self.shape else dim % len(self.shape)
    parts = op.Reshape(self, [-1]) if dim is None or not self.shape else self
    rank = 1 if dim is None else max(len(self.shape), 1)
    before = op.Concat(op.Slice(parts, [0], [1], [axis]), op.Slice(parts, [0], [-1], [axis]), axis=axis)
    differs = op.Cast(op.Not(op.Equal(parts, before)), to=_INT32)
    others = [each for each in range(rank) if each != axis]
    some = op.Cast(op.ReduceMax(differs, others, keepdims=0) if others else differs, to=int(ir.DataType.BOOL))
    count = op.Gather(op.Shape(parts), axis, axis=0)
    numbers = op.Range(0, count, 1)
    begins = op.Or(some, op.Equal(numbers, 0))
    inverse = counts = _nothing()
    if return_inverse:
        among = op.Sub(op.CumSum(op.Cast(begins, to=_INT64), 0), 1)
        inverse = op.Reshape(among, op.Shape(self), allowzero=1) if dim is None else among
    if return_counts:
        starts = op.Compress(numbers, begins, axis=0)
        counts = op.Sub(op.Slice(op.Concat(starts, op.Reshape(count, [1]), axis=0), [1], [2**31], [0]), starts)
    return [op.Compress(parts, begins, axis=axis), inverse, counts]


def _nothing() -> Any:
    return op.ConstantOfShape([0], value=ir.tensor([0], dtype=ir.DataType.INT64))


def _distinct(flat: Any) -> tuple[Any, Any, Any]:
    values, _, positions, counts = emit("Unique", [flat], {"sorted": 1}, outputs=4)
    return values, positions, counts


def _with_nan(flat: Any, like: ir.Value, return_inverse: bool) -> tuple[Any, Any, Any]:
    # NOTE: NaN has no place in the order, and ONNX Runtime would take all elements for one.
    is_nan = op.IsNaN(flat)
    is_number = op.Not(is_nan)
    values, positions, counts = _distinct(op.Compress(flat, is_number))
    after = op.Reshape(op.ReduceSum(op.Cast(is_nan, to=_INT64)), [1])
    whole = op.Concat(values, op.Expand(op.CastLike(math.nan, like), after), axis=0)
    all_counts = op.Concat(counts, op.Expand(1, after), axis=0)
    if not return_inverse:
        return whole, None, all_counts
    # The position among the numbers, or among the NaN, of each element.
    among_numbers, among_nan = (op.Sub(op.CumSum(op.Cast(each, to=_INT64), 0), 1) for each in (is_number, is_nan))
    # NOTE: one more element, which an element before the first number picks and does not use.
    found = op.Gather(op.Concat(positions, [0], axis=0), op.Max(among_numbers, 0), axis=0)
    return whole, op.Where(is_nan, op.Add(op.Shape(values), among_nan), found), all_counts
