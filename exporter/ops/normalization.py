"""Normalization layers. The results have the shape and dtype of the input (N, C, ...), unless the docstring gives others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates
from .casts import cast


@translates("aten::batch_norm")
def batch_norm(
    input: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    running_mean: ir.Value | None,
    running_var: ir.Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Any:
    """aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, ...) -> Tensor.

    Weight, bias and running statistics are (C). In training mode, and without running statistics, the batch's statistics are used.
    """
    del cudnn_enabled, momentum
    if not training and running_mean is not None and running_var is not None:
        like = running_mean
        return op.BatchNormalization(
            input,
            _or_filled(weight, 1.0, like),
            _or_filled(bias, 0.0, like),
            running_mean,
            running_var,
            epsilon=eps,
        )
    mean, variance = _batch_statistics(input)
    return _normalized(input, weight, bias, mean, variance, eps)[0]


@translates("aten::_native_batch_norm_legit_functional")
def batch_norm_functional(
    input: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    running_mean: ir.Value,
    running_var: ir.Value,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, ...) -> 5 Tensors.

    The result, the mean (C), the reciprocal deviation (C), the new running mean (C), and the new running variance (C), which is unbiased.
    """
    if not training:
        return [*native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps), running_mean, running_var]
    mean, variance = _batch_statistics(input)
    result, deviation = _normalized(input, weight, bias, mean, variance, eps)
    count = op.CastLike(op.Div(op.Size(input), op.Shape(input, start=1, end=2)), variance)
    mean, variance = op.Reshape(mean, [-1]), op.Reshape(variance, [-1])
    unbiased = op.Div(op.Mul(variance, count), op.Sub(count, 1.0))
    new_mean, new_variance = (
        op.Add(op.Mul(old, 1.0 - momentum), op.Mul(cast(new, old.dtype), momentum))
        for old, new in ((running_mean, mean), (running_var, unbiased))
    )
    return [result, mean, deviation, new_mean, new_variance]


@translates("aten::native_batch_norm")
def native_batch_norm(
    input: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    running_mean: ir.Value | None,
    running_var: ir.Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, ...) -> (Tensor, Tensor, Tensor).

    The result, and the mean (C) and reciprocal deviation (C) of the batch, which in evaluation are empty (0).
    """
    if training or running_mean is None or running_var is None:
        mean, variance = _batch_statistics(input)
        result, deviation = _normalized(input, weight, bias, mean, variance, eps)
        return [result, op.Reshape(mean, [-1]), deviation]
    empty = op.CastLike(op.Constant(value=ir.tensor(np.zeros(0, dtype=np.float32))), running_mean)
    return [batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps), empty, empty]


@translates("aten::_native_batch_norm_legit.no_stats")
def native_batch_norm_no_statistics(
    input: ir.Value, weight: ir.Value | None, bias: ir.Value | None, training: bool, momentum: float, eps: float
) -> Any:
    """aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, ...) -> (Tensor, Tensor, Tensor).

    The result, and the mean (C) and reciprocal deviation (C) of the batch.
    """
    return native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@translates("aten::_native_batch_norm_legit_no_training")
def native_batch_norm_no_training(
    input: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    running_mean: ir.Value,
    running_var: ir.Value,
    momentum: float,
    eps: float,
) -> Any:
    """aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, ...) -> (Tensor, Tensor, Tensor).

    The result, and two empty tensors (0).
    """
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _batch_statistics(value: ir.Value) -> tuple[Any, Any]:
    """The mean and the biased variance of each channel: (1, C, 1, ...)."""
    assert value.shape is not None
    axes = [axis for axis in range(len(value.shape)) if axis != 1]
    mean = op.ReduceMean(value, axes, keepdims=1)
    centered = op.Sub(value, mean)
    return mean, op.ReduceMean(op.Mul(centered, centered), axes, keepdims=1)


def _normalized(
    value: ir.Value, weight: ir.Value | None, bias: ir.Value | None, mean: Any, variance: Any, eps: float
) -> tuple[ir.Value, ir.Value]:
    """The normalized value and the reciprocal deviation (C)."""
    assert value.shape is not None
    per_channel = [1, -1, *[1] * (len(value.shape) - 2)]
    deviation = op.Reciprocal(op.Sqrt(op.Add(variance, eps)))
    result = op.Mul(op.Sub(value, mean), deviation)
    if weight is not None:
        result = op.Mul(result, op.Reshape(cast(weight, value.dtype), per_channel))
    if bias is not None:
        result = op.Add(result, op.Reshape(cast(bias, value.dtype), per_channel))
    return result, op.Reshape(deviation, [-1])


@translates("aten::native_layer_norm")
def native_layer_norm(
    input: ir.Value, normalized_shape: Sequence[Any], weight: ir.Value | None, bias: ir.Value | None, eps: float
) -> list[Any]:
    """aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> Tensor[3].

    The result, the mean and the reciprocal deviation over the last dims, all of the dtype of `input`.
    """
    value = _as_precise(input, weight)
    scale = op.Expand(op.CastLike(1.0, input), normalized_shape) if weight is None else weight
    attributes = {"axis": -len(normalized_shape), "epsilon": eps}
    result, *statistics = emit("LayerNormalization", [value, scale, bias], attributes, outputs=3)
    return [cast(result, input.dtype), *(op.Cast(each, to=int(input.dtype or ir.DataType.FLOAT)) for each in statistics)]


@translates("aten::layer_norm")
def layer_norm(
    input: ir.Value,
    normalized_shape: Sequence[Any],
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, ...) -> Tensor.

    Weight and bias have the shape `normalized_shape`, which is that of the last dims of the input.
    """
    del cudnn_enable
    value = _as_precise(input, weight)
    scale = op.Expand(op.CastLike(1.0, input), list(normalized_shape)) if weight is None else weight
    (result,) = emit("LayerNormalization", [value, scale, bias], {"axis": -len(normalized_shape), "epsilon": eps}, outputs=1)
    return cast(result, input.dtype)


@translates("aten::group_norm")
def group_norm(
    input: ir.Value,
    num_groups: int,
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, ...) -> Tensor.

    Each group is an instance; weight and bias (C) are per channel. From opset 21 on ONNX has an operator for it.
    """
    del cudnn_enabled
    assert input.shape is not None
    value = _as_precise(input, weight)
    one, zero = (op.Expand(op.CastLike(number, value), [num_groups]) for number in (1.0, 0.0))
    grouped = op.InstanceNormalization(op.Reshape(value, [0, num_groups, -1]), one, zero, epsilon=eps)
    result = op.Reshape(grouped, op.Shape(input), allowzero=1)
    inner = list(range(1, len(input.shape) - 1))
    if weight is not None:
        result = op.Mul(result, op.Unsqueeze(weight, inner) if inner else weight)
    result = result if bias is None else op.Add(result, op.Unsqueeze(bias, inner) if inner else bias)
    return cast(result, input.dtype)


def _as_precise(input: ir.Value, weight: ir.Value | None) -> Any:
    """The input in the dtype of the weight: PyTorch takes weights of float32 for an input of fewer bits, as under autocast."""
    return input if weight is None else cast(input, weight.dtype)


def _or_filled(value: ir.Value | None, fill: float, like: ir.Value) -> Any:
    if value is not None:
        return value
    assert like.shape is not None and like.dtype is not None
    return op.Constant(value=ir.tensor(np.full(like.shape.numpy(), fill, dtype=like.dtype.numpy())))
