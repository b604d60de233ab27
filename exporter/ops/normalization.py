"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recorder import op

from . import emit, translates


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
    """aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, ...).

    In training mode, and without running statistics, the statistics are the batch's own.
    """
    del cudnn_enabled
    if not training and running_mean is not None and running_var is not None:
        like = running_mean
        return op.BatchNormalization(
            input,
            _or_filled(weight, 1.0, like),
            _or_filled(bias, 0.0, like),
            running_mean,
            running_var,
            epsilon=eps,
            momentum=1.0 - momentum,
        )
    assert input.shape is not None
    axes = [axis for axis in range(len(input.shape)) if axis != 1]
    per_channel = [1, -1, *[1] * (len(input.shape) - 2)]
    mean = op.ReduceMean(input, axes, keepdims=1)
    centered = op.Sub(input, mean)
    variance = op.ReduceMean(op.Mul(centered, centered), axes, keepdims=1)
    result = op.Div(centered, op.Sqrt(op.Add(variance, eps)))
    if weight is not None:
        result = op.Mul(result, op.Reshape(weight, per_channel))
    return result if bias is None else op.Add(result, op.Reshape(bias, per_channel))


@translates("aten::layer_norm")
def layer_norm(
    input: ir.Value,
    normalized_shape: Sequence[Any],
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    """aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps, bool cudnn_enable)."""
    del cudnn_enable
    scale = op.Expand(op.CastLike(1.0, input), list(normalized_shape)) if weight is None else weight
    (result,) = emit("LayerNormalization", [input, scale, bias], {"axis": -len(normalized_shape), "epsilon": eps}, outputs=1)
    return result


@translates("aten::group_norm")
def group_norm(
    input: ir.Value,
    num_groups: int,
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    """aten::group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps, bool cudnn_enabled).

    Each group is an instance; scale and shift are per channel. (ONNX has an operator of its own from opset 21 on.)
    """
    del cudnn_enabled
    assert input.shape is not None
    one, zero = (op.Expand(op.CastLike(number, input), [num_groups]) for number in (1.0, 0.0))
    grouped = op.InstanceNormalization(op.Reshape(input, [0, num_groups, -1]), one, zero, epsilon=eps)
    result = op.Reshape(grouped, op.Shape(input))
    inner = list(range(1, len(input.shape) - 1))
    if weight is not None:
        result = op.Mul(result, op.Unsqueeze(weight, inner) if inner else weight)
    return result if bias is None else op.Add(result, op.Unsqueeze(bias, inner) if inner else bias)


def _or_filled(value: ir.Value | None, fill: float, like: ir.Value) -> Any:
    if value is not None:
        return value
    assert like.shape is not None and like.dtype is not None
    return op.Constant(value=ir.tensor(np.full(like.shape.numpy(), fill, dtype=like.dtype.numpy())))


@translates(
    "aten::dropout",
    "aten::dropout_",
    "aten::feature_dropout",
    "aten::alpha_dropout",
    "aten::feature_alpha_dropout",
    takes_complex=True,
)
def dropout(input: ir.Value, p: float, train: bool) -> Any:
    """aten::dropout(Tensor input, float p, bool train). In evaluation it returns its input."""
    if not train or p == 0:
        return input
    return op.Dropout(input, p, True)[0]
