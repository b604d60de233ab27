"""Pooling."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op, small_constant

from . import emit, translates


@translates("aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d")
def adaptive_avg_pool(self: ir.Value, output_size: Sequence[int | ir.Value]) -> Any:
    """aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor.

    `self` (N, C, ...) or (C, ...); the spatial dims get the sizes of `output_size`. Element i of k along a dim of size n is the mean from
    floor(i * n / k) to ceil((i + 1) * n / k).
    """
    assert self.shape is not None
    first = len(self.shape) - len(output_size)
    if all(_is_one(size) for size in output_size):
        if first == 2:
            return op.GlobalAveragePool(self)
        return op.ReduceMean(self, list(range(first, len(self.shape))), keepdims=1)
    sizes = list(self.shape)[first:]
    pairs = list(zip(sizes, output_size, strict=True))
    exact = [(size, wanted) for size, wanted in pairs if isinstance(size, int) and isinstance(wanted, int) and size % wanted == 0]
    if first == 2 and len(exact) == len(pairs):
        window = [size // wanted for size, wanted in exact]
        return op.AveragePool(self, kernel_shape=window, strides=window)
    result: Any = self
    for axis, (size, wanted) in enumerate(pairs, start=first):
        if _is_one(wanted):
            result = op.ReduceMean(result, [axis], keepdims=1)
        elif not isinstance(size, int) or not isinstance(wanted, int):
            result = _means(result, axis, wanted, len(self.shape))
        elif wanted != size:
            bounds = [(index * size // wanted, -(-(index + 1) * size // wanted)) for index in range(wanted)]
            parts = [op.ReduceMean(op.Slice(result, [start], [end], [axis]), [axis], keepdims=1) for start, end in bounds]
            result = op.Concat(*parts, axis=axis)
    return result


def _is_one(size: int | ir.Value) -> bool:
    return isinstance(size, int) and size == 1


def _means(value: Any, axis: int, count: int | ir.Value, rank: int) -> Any:
    """Adaptive pooling along a dim of dynamic size: a product with a matrix of weights."""
    size = op.Shape(value, start=axis, end=axis + 1)
    if isinstance(count, int):
        index: Any = np.arange(count, dtype=np.int64)[:, None]
        following: Any = index + 1
    else:
        index = op.Unsqueeze(op.Range(0, count, 1), [1])
        following = op.Add(index, 1)
    start = op.Div(op.Mul(index, size), count)
    end = op.Div(op.Add(op.Mul(following, size), op.Sub(count, 1) if isinstance(count, ir.Value) else count - 1), count)
    position = op.Range(0, op.Squeeze(size), 1)
    inside = op.And(op.GreaterOrEqual(position, start), op.Less(position, end))
    weights = op.Div(op.Cast(inside, to=int(value.dtype)), op.Cast(op.Sub(end, start), to=int(value.dtype)))
    last = rank - 1
    swapped = [last if each == axis else axis if each == last else each for each in range(last + 1)]
    if axis == last:
        return op.MatMul(value, op.Transpose(weights, perm=[1, 0]))
    return op.Transpose(op.MatMul(op.Transpose(value, perm=swapped), op.Transpose(weights, perm=[1, 0])), perm=swapped)


@translates("aten::avg_pool2d")
def avg_pool2d(
    self: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, ...) -> Tensor.

    `self` (N, C, H, W) or (C, H, W). The sum over each window is divided by `divisor_override`, or by the size of the window.

    Raises:
        ValueError: ONNX has no operator for this `ceil_mode`.
    """
    return _avg_pool(2, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@translates("aten::avg_pool3d")
def avg_pool3d(
    self: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, ...) -> Tensor.

    As `avg_pool2d`, for `self` (N, C, D, H, W) or (C, D, H, W).
    """
    return _avg_pool(3, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@translates("aten::avg_pool1d")
def avg_pool1d(
    self: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, ...) -> Tensor.

    As `avg_pool2d`, for `self` (N, C, L) or (C, L).
    """
    return _avg_pool(1, self, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _avg_pool(
    rank: int,
    value: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    assert value.shape is not None
    kernel, pads = _per_dim(kernel_size, rank), _per_dim(padding, rank)
    if value.dtype is not None and value.dtype.is_integer() and divisor_override is not None:
        # NOTE: the quotient of the sums is cut to an integer, and so would be a mean of integers.
        floats = op.Cast(value, to=int(ir.DataType.FLOAT))
        floats.shape = value.shape
        sums = _avg_pool(rank, floats, kernel, stride, pads, ceil_mode, count_include_pad, 1)
        return op.Div(op.Cast(op.Round(sums), to=int(value.dtype)), divisor_override)
    strides = _per_dim(stride, rank) if stride else kernel
    batched = _batched(value, rank)
    sizes: list[Any] = list(value.shape)[-rank:]
    along = list(zip(sizes, kernel, strides, pads, strict=True))
    is_fixed = all(isinstance(size, int) for size in sizes)
    if ceil_mode and (divisor_override is not None or (is_fixed and len(_roundings(along)) > 1)):
        # NOTE: ONNX rounds up along all dims or none, and divides by the number of elements that a window has.
        ends = [_exact_end(*each) if isinstance(each[0], int) else _end(*each[1:]) for each in along]
        padded = op.Pad(batched, [0, 0, *pads, 0, 0, *ends], op.CastLike(0, value))
        pooled = op.AveragePool(padded, kernel_shape=kernel, strides=strides)
        shares = (_shares(*each, count_include_pad=count_include_pad) for each in along)
        divided = functools.reduce(np.multiply.outer, shares) if divisor_override is None else math.prod(kernel) / divisor_override
        pooled = op.Mul(pooled, op.CastLike(op.Constant(value=ir.tensor(np.array(divided))), value))
    else:
        pooled = op.AveragePool(
            batched,
            kernel_shape=kernel,
            strides=strides,
            pads=[*pads, *pads],
            ceil_mode=int(ceil_mode and _rounds_up(sizes, kernel, strides, pads)),
            count_include_pad=int(count_include_pad or divisor_override is not None),
        )
        if divisor_override is not None:
            pooled = op.Mul(pooled, math.prod(kernel) / divisor_override)
    return op.Squeeze(pooled, [0]) if len(value.shape) == rank + 1 else pooled


def _shares(size: int, window: int, step: int, pad: int, *, count_include_pad: bool) -> Any:
    """For each window along a dim its size, divided by the number of its elements that count: not those that `ceil_mode` adds."""
    begins = np.arange(-pad, size + _exact_end(size, window, step, pad) - window + 1, step)
    around = pad if count_include_pad else 0
    return window / (np.minimum(begins + window, size + around) - np.maximum(begins, -around))


@translates("aten::max_pool1d")
def max_pool1d(
    self: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, ...) -> Tensor.

    As `max_pool2d`, for `self` (N, C, L) or (C, L).
    """
    return _max_pool(1, self, kernel_size, stride, padding, dilation, ceil_mode)


@translates("aten::max_pool2d")
def max_pool2d(
    self: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, ...) -> Tensor.

    `self` (N, C, H, W) or (C, H, W). The maximum of each window.
    """
    return _max_pool(2, self, kernel_size, stride, padding, dilation, ceil_mode)


@translates("aten::max_pool3d")
def max_pool3d(
    self: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, ...) -> Tensor.

    As `max_pool2d`, for `self` (N, C, D, H, W) or (C, D, H, W).
    """
    return _max_pool(3, self, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool(
    rank: int,
    value: ir.Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Any:
    assert value.shape is not None
    kernel, pads, dilations = (_per_dim(each, rank) for each in (kernel_size, padding, dilation))
    strides = _per_dim(stride, rank) if stride else kernel
    batched = _batched(value, rank)
    windows = [step * (size - 1) + 1 for size, step in zip(kernel, dilations, strict=True)]
    ends, rounds_up = list(pads), ceil_mode
    if ceil_mode:
        sizes: list[Any] = list(value.shape)[-rank:]
        along = zip(sizes, windows, strides, pads, strict=True)
        exact = [_exact_end(size, *others) if isinstance(size, int) else others[-1] for size, *others in along]
        # NOTE: ONNX Runtime takes no padding of the size of the kernel.
        if all(0 <= end < size for end, size in zip(exact, kernel, strict=True)):
            ends, rounds_up = exact, not all(isinstance(size, int) for size in sizes)
        else:
            rounds_up = _rounds_up(sizes, windows, strides, pads)
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": [*pads, *ends], "dilations": dilations, "ceil_mode": int(rounds_up)}
    (pooled,) = emit("MaxPool", [batched], attributes, outputs=1)
    return op.Squeeze(pooled, [0]) if len(value.shape) == rank + 1 else pooled


@translates("aten::grid_sampler_3d")
def grid_sampler_3d(input: ir.Value, grid: ir.Value, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor.

    `input` (N, C, D, H, W), `grid` (N, d, h, w, 3), the result (N, C, d, h, w). ONNX has it from opset 20 on.
    """
    attributes = {
        "mode": ("linear", "nearest")[interpolation_mode],
        "padding_mode": ("zeros", "border", "reflection")[padding_mode],
        "align_corners": int(align_corners),
    }
    return emit("GridSample", [input, grid], attributes, outputs=1, opset=20)[0]


def _batched(value: ir.Value, rank: int) -> Any:
    """`value` with a dim for the batch, as ONNX wants it."""
    assert value.shape is not None
    if len(value.shape) == rank + 1:
        return op.Unsqueeze(value, [0])
    if _is_padded_with_zeros(value):
        # NOTE: ONNX Runtime's optimizer merges a Pad with zeros into the pooling after it (seen in 1.31), although MaxPool pads with the
        # least value, and although it then refuses paddings as large as the window.
        return op.Reshape(value, [0] * len(value.shape))
    return value


def _is_padded_with_zeros(value: ir.Value) -> bool:
    producer = value.producer()
    if producer is None or producer.op_type != "Pad":
        return False
    number = producer.inputs[2] if len(producer.inputs) > 2 else None
    known = None if number is None else small_constant(number)
    return number is None or known is None or not known.any()


def _rounds_up(sizes: Sequence[Any], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int]) -> bool:
    """Whether `ceil_mode` adds a window in PyTorch, which leaves out a window that begins in the padding at the end; ONNX keeps it."""
    if not all(isinstance(size, int) for size in sizes):
        return True
    more = _roundings(list(zip(sizes, kernel, strides, pads, strict=True)))
    if len(more) > 1:
        raise ValueError("ceil_mode adds a window along some dims and none along others, which ONNX has no attribute for")
    return more == {True}


def _roundings(along: Sequence[Sequence[Any]]) -> set[bool]:
    """Whether `ceil_mode` adds a window, for the dims where it matters. Each dim has a size, a window, a step and a padding."""
    return {bool(_adds(*each)) for each in along if (each[0] + 2 * each[3] - each[1]) % each[2]}


def _end(kernel: int, stride: int, pad: int) -> int:
    """The padding behind any size with which all windows are whole that begin within the image or the padding before it."""
    return pad + min(stride, kernel - pad) - 1


def _exact_end(size: int, window: int, step: int, pad: int) -> int:
    """The padding at the end with which the windows of `ceil_mode` fit exactly. The values in it are less than all others."""
    return pad + (_adds(size, window, step, pad) or -((size + 2 * pad - window) % step))


def _adds(size: int, window: int, step: int, pad: int) -> int:
    """How many more elements of padding the window needs that `ceil_mode` adds along a dim; 0 if it adds none."""
    begins = -(-(size + 2 * pad - window) // step) * step
    return begins + window - (size + 2 * pad) if begins < size + pad else 0


def _per_dim(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)
