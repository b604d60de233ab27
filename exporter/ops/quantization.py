"""Numbers rounded to those that an integer type can hold, as ONNX's QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates

_FLOAT = ir.DataType.FLOAT
_WHOLE = (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64)
_RANGES = {ir.DataType.INT8: (-128, 127), ir.DataType.UINT8: (0, 255)}
"""The types that QuantizeLinear has in each opset, with their least and their largest number. Floats emulate the others."""


@translates("aten::fake_quantize_per_tensor_affine", "aten::fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize_per_tensor_affine(self: ir.Value, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    """aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor.

    The overload `tensor_qparams` has tensors of one element for `scale` and `zero_point`.
    """
    scale, zero_point = _number(scale, _FLOAT), _number(zero_point, ir.DataType.INT32)
    return _fake_quantized(self, scale, zero_point, None, quant_min, quant_max)


@translates("aten::fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine(
    self: ir.Value, scale: ir.Value, zero_point: ir.Value, axis: int, quant_min: int, quant_max: int
) -> Any:
    """aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, ...) -> Tensor.

    `scale` and `zero_point` have shape (C,), for the dim `axis` of size C. A `zero_point` of floats is not rounded.
    """
    return _fake_quantized(self, scale, zero_point, axis, quant_min, quant_max)


@translates("aten::_fake_quantize_learnable_per_tensor_affine")
def fake_quantize_learnable_per_tensor_affine(
    self: ir.Value, scale: ir.Value, zero_point: ir.Value, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Any:
    """aten::_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ...)."""
    del grad_factor
    whole = _number(_within(op.Round(zero_point), quant_min, quant_max), ir.DataType.INT32)
    return _fake_quantized(self, _number(scale, _FLOAT), whole, None, quant_min, quant_max)


@translates("aten::_fake_quantize_learnable_per_channel_affine")
def fake_quantize_learnable_per_channel_affine(
    self: ir.Value, scale: ir.Value, zero_point: ir.Value, axis: int, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Any:
    """aten::_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, ...)."""
    del grad_factor
    whole = op.Cast(_within(op.Round(zero_point), quant_min, quant_max), to=ir.DataType.INT32)
    return _fake_quantized(self, scale, whole, axis, quant_min, quant_max)


@translates(
    "quantized_decomposed::quantize_per_tensor",
    "quantized_decomposed::quantize_per_tensor.tensor",
    "quantized_decomposed::quantize_per_tensor.tensor2",
)
def quantize_per_tensor(input: ir.Value, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: int) -> Any:
    """quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype).

    The overloads have tensors of one element for `scale`, `zero_point`, and `tensor2` for the range as well. The result has `dtype`.
    """
    scale, zero_point = _number(scale, _FLOAT), _number(zero_point, ir.DataType.INT32)
    return _quantized(op.Cast(input, to=_FLOAT), scale, zero_point, None, _whole(quant_min), _whole(quant_max), ir.DataType(dtype))


@translates("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(
    input: ir.Value, scales: ir.Value, zero_points: ir.Value, axis: int, quant_min: int, quant_max: int, dtype: int
) -> Any:
    """quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, ...) -> Tensor.

    `scales` and `zero_points` have shape (C,), for the dim `axis` of size C. The result has `dtype`.
    """
    values = op.Cast(input, to=_FLOAT)
    return _quantized(values, op.Cast(scales, to=_FLOAT), zero_points, axis, quant_min, quant_max, ir.DataType(dtype))


@translates(
    "quantized_decomposed::dequantize_per_tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor2",
)
def dequantize_per_tensor(
    input: ir.Value, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: int, out_dtype: int = -1
) -> Any:
    """quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, ...) -> Tensor.

    The result is float32 unless `out_dtype` gives another dtype.
    """
    del quant_min, quant_max, dtype
    return _dequantized(input, _number(scale, _FLOAT), _number(zero_point, ir.DataType.INT32), None, out_dtype)


@translates("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(
    input: ir.Value,
    scales: ir.Value,
    zero_points: ir.Value | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
    out_dtype: int = -1,
) -> Any:
    """quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, ...) -> Tensor.

    The result is float32 unless `out_dtype` gives another dtype.
    """
    del quant_min, quant_max, dtype
    return _dequantized(input, op.Cast(scales, to=_FLOAT), zero_points, axis, out_dtype)


@translates("quantized_decomposed::choose_qparams.tensor")
def choose_qparams(input: ir.Value, quant_min: int, quant_max: int, eps: float, dtype: int) -> Any:
    """quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype).

    Returns:
        The scale (float64) and the zero point (int64) of all elements, both of shape (1,).
    """
    del dtype
    values = op.Cast(input, to=_FLOAT)
    least = op.Min(op.ReduceMin(values), 0.0)
    largest = op.Max(op.ReduceMax(values), 0.0)
    scale = op.Max(op.Div(op.Sub(largest, least), float(quant_max - quant_min)), eps)
    zero_point = _within(op.Sub(float(quant_min), op.Round(op.Div(least, scale))), quant_min, quant_max)
    return op.Reshape(op.Cast(scale, to=ir.DataType.DOUBLE), [1]), op.Reshape(op.Cast(zero_point, to=ir.DataType.INT64), [1])


@translates("quantized_decomposed::choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(input: ir.Value, quant_min: int, quant_max: int, eps: float, dtype: int) -> Any:
    """quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype).

    Returns:
        The scale (float64) and the zero point (int64) of all elements, both of shape (1,).
    """
    largest = op.ReduceMax(op.Abs(op.Cast(input, to=_FLOAT)))
    scale = op.Max(op.Div(largest, (quant_max - quant_min) / 2), eps)
    zero_point = 128 if ir.DataType(dtype) is ir.DataType.UINT8 else 0
    return op.Reshape(op.Cast(scale, to=ir.DataType.DOUBLE), [1]), op.Cast([zero_point], to=ir.DataType.INT64)


@translates("aten::_int_mm")
def int_mm(self: ir.Value, mat2: ir.Value) -> Any:
    """aten::_int_mm(Tensor self, Tensor mat2) -> Tensor: int8 of shapes (M, K) and (K, N) to int32 of shape (M, N)."""
    return op.MatMulInteger(self, mat2)


def _fake_quantized(x: Any, scale: Any, zero_point: Any, axis: int | None, least: int, largest: int) -> Any:
    """`x` rounded to a multiple of `scale` that an integer in [least, largest] stands for: see `_quantized`."""
    kind = next((dtype for dtype, (first, last) in _RANGES.items() if first <= least and largest <= last), None)
    values = op.Cast(x, to=_FLOAT)
    if kind is None or zero_point.dtype not in _WHOLE:
        scale, zero = _along(scale, axis, x), op.Cast(_along(zero_point, axis, x), to=_FLOAT)
        whole = _steps(values, scale, zero_point, zero, least, largest)
        return op.Cast(op.Mul(op.Sub(whole, zero), scale), to=x.dtype)
    quantized = _quantized(values, scale, zero_point, axis, least, largest, kind)
    return op.Cast(_dequantized(quantized, scale, zero_point, axis), to=x.dtype)


def _quantized(values: Any, scale: Any, zero_point: Any, axis: int | None, least: int, largest: int, dtype: ir.DataType) -> Any:
    """The integers that stand for `values`.

    Args:
        values: float32 of any shape.
        scale: One float32, or one for each index of `axis`.
        zero_point: The integers that stand for 0, of the shape of `scale`.
        axis: The dim of the channels; None if all elements have the same scale.
        least: The least integer.
        largest: The largest integer.
        dtype: The type of the result.
    """
    if dtype not in _RANGES or zero_point.dtype not in _WHOLE:
        scale, zero_point = _along(scale, axis, values), _along(zero_point, axis, values)
        return op.Cast(_steps(values, scale, zero_point, op.Cast(zero_point, to=_FLOAT), least, largest), to=dtype)
    quantized = op.QuantizeLinear(values, scale, op.Cast(zero_point, to=dtype), **_channels(axis))
    if (least, largest) == _RANGES[dtype]:
        return quantized
    return op.Clip(quantized, op.Cast(least, to=dtype), op.Cast(largest, to=dtype))


def _dequantized(quantized: Any, scale: Any, zero_point: Any, axis: int | None, dtype: int | None = -1) -> Any:
    """The floats that the integers `quantized` stand for, float32 or of another dtype."""
    target = _FLOAT if dtype in (-1, None) else dtype
    if quantized.dtype in _RANGES and (zero_point is None or zero_point.dtype in _WHOLE):
        zero = None if zero_point is None else op.Cast(zero_point, to=quantized.dtype)
        return op.Cast(op.DequantizeLinear(quantized, scale, zero, **_channels(axis)), to=target)
    values = op.Cast(quantized, to=_FLOAT)
    if zero_point is not None:
        values = op.Sub(values, op.Cast(_along(zero_point, axis, quantized), to=_FLOAT))
    return op.Cast(op.Mul(values, _along(scale, axis, quantized)), to=target)


def _steps(values: Any, scale: Any, zero_point: Any, zero: Any, least: int, largest: int) -> Any:
    """The integers that stand for `values`, as floats."""
    steps = op.Mul(values, op.Reciprocal(scale))
    # NOTE: whole zero points are added after rounding, which decides ties.
    whole = zero_point.dtype in _WHOLE
    return _within(op.Add(op.Round(steps), zero) if whole else op.Round(op.Add(steps, zero)), least, largest)


def _channels(axis: int | None) -> dict[str, int]:
    return {} if axis is None else {"axis": axis}


def _along(numbers: Any, axis: int | None, tensor: Any) -> Any:
    """One number for each index of `axis`, in a shape that broadcasts with `tensor`."""
    if axis is None:
        return numbers
    shape = [1] * len(tensor.shape)
    shape[axis] = -1
    return op.Reshape(numbers, shape)


def _within(values: Any, least: int, largest: int) -> Any:
    return op.Clip(values, float(least), float(largest))


def _number(value: Any, dtype: ir.DataType) -> Any:
    """A Python number or a tensor with one element as a 0-d tensor."""
    number = op.Cast(value, to=dtype)
    return number if number.shape is not None and not len(number.shape) else op.Reshape(number, [])


def _whole(value: Any) -> int:
    """A Python number, or the value of a constant with one element."""
    if not isinstance(value, ir.Value):
        return int(value)
    if value.const_value is None:
        raise ValueError("the range of the integers must be fixed, it depends on an input")
    return int(value.const_value.numpy().item())
