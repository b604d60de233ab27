"""Losses that ONNX's operators cover only in part."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates

_NONE, _MEAN = 0, 1


@translates("aten::cross_entropy_loss")
def cross_entropy_loss(
    self: ir.Value,
    target: ir.Value,
    weight: ir.Value | None = None,
    reduction: int = _MEAN,
    ignore_index: Any = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, ...) -> Tensor.

    ONNX's operator takes neither probabilities nor smoothing.

    Args:
        self: Logits (C), (N, C) or (N, C, ...).
        target: Classes as ints, of the logits' shape without C, or probabilities of the logits' shape.
        weight: (C).
        reduction: 0 for none, 1 for the mean, 2 for the sum.
        ignore_index: The class of elements that do not count.
        label_smoothing: The probability that is spread over all classes; the rest is for the target's own class.

    Returns:
        A scalar; with reduction 0 the logits' shape without C.
    """
    assert self.shape is not None
    assert target.dtype is not None
    axis = min(len(self.shape) - 1, 1)
    log_probability = op.LogSoftmax(self, axis=axis)
    scale = None if weight is None else op.Reshape(weight, [-1, *[1] * (len(self.shape) - axis - 1)])
    weighted = log_probability if scale is None else op.Mul(log_probability, scale)
    classes = op.CastLike(op.Squeeze(op.Shape(self, start=axis, end=axis + 1)), self)
    if target.dtype.is_floating_point():
        if label_smoothing:
            target = op.Add(op.Mul(target, 1.0 - label_smoothing), op.Div(op.CastLike(label_smoothing, self), classes))
        loss = op.Neg(op.ReduceSum(op.Mul(weighted, target), [axis], keepdims=0))
        return _reduced(loss, op.CastLike(op.Size(loss), loss), reduction)
    zero = op.CastLike(0.0, self)
    kept = op.Not(op.Equal(target, ignore_index))
    known = op.Where(kept, target, op.CastLike(0, target))
    own = op.Squeeze(op.GatherElements(weighted, op.Unsqueeze(known, [axis]), axis=axis), [axis])
    loss = op.Neg(op.Where(kept, own, zero))
    if label_smoothing:
        all_classes = op.Neg(op.Where(kept, op.ReduceSum(weighted, [axis], keepdims=0), zero))
        share = op.Div(op.CastLike(label_smoothing, self), classes)
        loss = op.Add(op.Mul(loss, 1.0 - label_smoothing), op.Mul(all_classes, share))
    weights = op.CastLike(kept, self) if weight is None else op.Where(kept, op.Gather(weight, known), zero)
    return _reduced(loss, _total(weights), reduction)


def _reduced(loss: Any, count: Any, reduction: int) -> Any:
    if reduction == _NONE:
        return loss
    return op.Div(_total(loss), count) if reduction == _MEAN else _total(loss)


def _total(value: Any) -> Any:
    return op.ReduceSum(value, None, keepdims=0)


@translates("aten::soft_margin_loss")
def soft_margin_loss(self: ir.Value, target: ir.Value, reduction: int = 1) -> Any:
    """aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor: log(1 + exp(-target * self)), its mean, or its sum.

    Computed in FLOAT at least, as in PyTorch: the exponential overflows.
    """
    narrow = self.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    a, b = (op.Cast(each, to=int(ir.DataType.FLOAT)) if narrow else each for each in (self, target))
    loss = op.Softplus(op.Neg(op.Mul(a, b)))
    loss = op.ReduceMean(loss, None, keepdims=0) if reduction == 1 else op.ReduceSum(loss, None, keepdims=0) if reduction == 2 else loss
    return op.CastLike(loss, self)
