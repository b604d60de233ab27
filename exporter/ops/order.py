"""What depends on the order of elements: quantiles, medians, running extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import Tensor, current, op

from . import emit, translates


@translates("aten::masked_select")
def masked_select(self: ir.Value, mask: ir.Value) -> Any:
    """aten::masked_select(Tensor self, Tensor mask): a vector of those of the broadcast tensor for which the mask is true."""
    value, kept = op.Expand(self, op.Shape(mask)), op.Expand(mask, op.Shape(self))
    return op.Compress(op.Reshape(value, [-1]), op.Reshape(kept, [-1]))


@translates("aten::quantile")
def quantile(self: ir.Value, q: Any, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    """aten::quantile(Tensor self, Tensor q, int? dim, bool keepdim, *, str interpolation): between the sorted elements of a dim, or of all;
    a vector of quantiles makes a first dim. NaN where there is one."""
    assert self.shape is not None
    rank = len(self.shape)
    axis = 0 if dim is None or not rank else dim % rank
    values = op.Reshape(self, [-1]) if dim is None or not rank else self
    values_rank = 1 if dim is None else max(rank, 1)
    position = op.Mul(q, op.CastLike(op.Sub(_size(values, axis), 1), self))
    low, high = op.Floor(position), op.Ceil(position)
    ordered, _ = _sorted(values, axis)
    below, above = (_picked(ordered, each, axis, values_rank) for each in (low, high))
    match interpolation:
        case "linear" | "midpoint":
            share = op.Sub(position, low) if interpolation == "linear" else op.CastLike(0.5, self)
            if interpolation == "linear" and _is_vector(q):
                share = op.Reshape(share, [-1, *[1] * values_rank])
            result = op.Add(below, op.Mul(op.Sub(above, below), share))
        case "lower":
            result = below
        case "higher":
            result = above
        case _:
            result = _picked(ordered, op.Round(position), axis, values_rank)
    is_nan = op.ReduceMax(op.Cast(op.IsNaN(values), to=int(ir.DataType.INT32)), [axis], keepdims=1)
    first = int(_is_vector(q))
    is_nan = op.Squeeze(is_nan, [axis])
    result = op.Squeeze(result, [axis + 1] if first else [0, axis + 1])
    result = op.Where(op.Cast(is_nan, to=int(ir.DataType.BOOL)), op.CastLike(float("nan"), self), result)
    if not keepdim or not rank:
        return result
    return op.Unsqueeze(result, [each + first for each in (range(rank) if dim is None else [axis])])


@translates("aten::quantile.scalar")
def quantile_scalar(self: ir.Value, q: float, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    """aten::quantile.scalar(Tensor self, float q, int? dim, bool keepdim, *, str interpolation)."""
    return quantile(self, op.CastLike(q, self), dim, keepdim, interpolation)


def _is_vector(value: Any) -> bool:
    return isinstance(value, ir.Value) and value.shape is not None and len(value.shape) == 1


def _picked(ordered: Any, position: Any, axis: int, rank: int) -> Any:
    """The elements at each of the positions, which come first; `axis` stays as one of size 1 behind them."""
    positions = op.Reshape(op.Cast(position, to=int(ir.DataType.INT64)), [-1, 1])
    found = op.Gather(ordered, positions, axis=axis)
    return op.Transpose(found, perm=[axis, *range(axis), *range(axis + 1, rank + 1)])


@translates("aten::median")
def median(self: ir.Value) -> Any:
    """aten::median(Tensor self): of all elements the lower one in the middle; NaN if there is one."""
    flat = op.Reshape(self, [-1])
    flat.shape = ir.Shape([None])
    return median_dim(flat, 0)[0]


@translates("aten::median.dim")
def median_dim(self: ir.Value, dim: int, keepdim: bool = False) -> Any:
    """aten::median.dim(Tensor self, int dim, bool keepdim): the lower element in the middle and its position; NaN if there is one."""
    assert self.shape is not None
    if not self.shape:
        return [self, op.Constant(value=ir.tensor(np.array(0)))]
    axis = dim % len(self.shape)
    middle = op.Div(op.Sub(_size(self, axis), 1), 2)
    values, positions = _kth(self, middle, axis, keepdim)
    if self.dtype is None or not self.dtype.is_floating_point():
        return [values, positions]
    is_nan = op.Cast(op.IsNaN(self), to=int(ir.DataType.INT32))
    found = op.Cast(op.ReduceMax(is_nan, [axis], keepdims=int(keepdim)), to=int(ir.DataType.BOOL))
    values = op.Where(found, op.CastLike(float("nan"), self), values)
    return [values, op.Where(found, op.ArgMax(is_nan, axis=axis, keepdims=int(keepdim)), positions)]


@translates("aten::kthvalue")
def kthvalue(self: ir.Value, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """aten::kthvalue(Tensor self, SymInt k, int dim, bool keepdim): the k-th smallest element, counted from 1, and its position."""
    assert self.shape is not None
    if not self.shape:
        return [self, op.Constant(value=ir.tensor(np.array(0)))]
    return list(_kth(self, k - 1 if isinstance(k, int) else op.Sub(k, 1), dim % len(self.shape), keepdim))


def _kth(value: ir.Value, position: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    at = op.Reshape(position, [1]) if isinstance(position, ir.Value) else op.Constant(value_ints=[position])
    values, positions = (op.Gather(each, at, axis=axis) for each in _sorted(value, axis))
    return (values, positions) if keepdim else (op.Squeeze(values, [axis]), op.Squeeze(positions, [axis]))


def _sorted(value: ir.Value, axis: int) -> tuple[Any, Any]:
    """In rising order along an axis, and where they came from."""
    values, positions = op.TopK(value, op.Reshape(_size(value, axis), [1]), axis=axis, largest=0, sorted=1)
    if value.shape is not None:
        values.shape = value.shape
    return values, positions


def _size(value: ir.Value, axis: int) -> Any:
    return op.Squeeze(op.Shape(value, start=axis, end=axis + 1))


@translates("aten::cummax")
def cummax(self: ir.Value, dim: int) -> Any:
    """aten::cummax(Tensor self, int dim): the largest so far and its last position; NaN stays."""
    return _running(self, dim, "GreaterOrEqual")


@translates("aten::cummin")
def cummin(self: ir.Value, dim: int) -> Any:
    """aten::cummin(Tensor self, int dim): the smallest so far and its last position; NaN stays."""
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
    """aten::logcumsumexp(Tensor self, int dim): the logarithm of the running sum of exponentials."""
    assert self.shape is not None
    if not self.shape:
        return self
    axis = dim % len(self.shape)

    def step(total: Any, each: Any) -> tuple[list[Any], list[Any]]:
        # NOTE: of two infinities there is no difference.
        gap = op.Where(op.Equal(total, each), op.CastLike(0.0, each), op.Abs(op.Sub(total, each)))
        total = op.Add(op.Max(total, each), op.Log(op.Add(op.Exp(op.Neg(gap)), 1.0)))
        return [total], [total]

    shape = op.Shape(op.Gather(self, 0, axis=axis))
    return scan(step, [op.Expand(op.CastLike(float("-inf"), self), shape)], [self], axis)[-1]


def scan(step: Callable[..., tuple[list[Any], list[Any]]], carried: Sequence[Any], scanned: Sequence[Any], axis: int) -> list[Any]:
    """An ONNX Scan: `step` takes what is carried and a slice of each of `scanned` along `axis`; it returns what is carried on, and slices
    of the results. Returns what is carried in the end, then the results."""
    recorder = current()
    # NOTE: older versions of ONNX Runtime (seen in 1.23) want to know how many dims each value of the body has.
    # What is carried is a scalar of known shape, or like a slice.
    cut = [_of_rank(each, 1) for each in scanned]
    kept = [cut[0] if each.shape is None else _of_rank(each, 0) for each in carried]
    shapes = [*kept, *cut]
    inputs = [
        Tensor(name=f"in_{number}", type=ir.TensorType(each.dtype), shape=shapes[number])
        for number, each in enumerate((*carried, *scanned))
    ]
    outer = recorder.take()
    states, slices = step(*inputs)
    nodes = recorder.take()
    recorder.nodes = outer
    shapes = [*kept, *(cut[0] for _ in slices)]
    outputs = [
        Tensor(name=f"out_{number}", type=ir.TensorType(each.dtype), shape=shapes[number]) for number, each in enumerate((*states, *slices))
    ]
    nodes += [ir.Node("", "Identity", [each], outputs=[out], version=16) for each, out in zip((*states, *slices), outputs, strict=True)]
    body = ir.Graph(inputs, outputs, nodes=nodes, name="step")
    attributes = {
        "body": body,
        "num_scan_inputs": len(scanned),
        "scan_input_axes": [axis] * len(scanned),
        "scan_output_axes": [axis] * len(slices),
    }
    return emit("Scan", [*carried, *scanned], attributes, len(outputs))


def _of_rank(value: Any, less: int) -> ir.Shape | None:
    """A shape of unknown sizes with as many dims as `value` has, and `less` fewer; None if that is not known."""
    return None if value.shape is None else ir.Shape([None] * (len(value.shape) - less))
