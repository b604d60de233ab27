"""Convolutions: input (N, C, ...) or (C, ...), weight (O, C / groups, ...), result (N, O, ...) or (O, ...)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import translates

# NOTE: where there is no bias, torchlib makes one: for conv3d of the wrong shape, for others at run time (read in onnxscript 0.7.2).


@translates("aten::conv1d", "aten::conv2d", "aten::conv3d")
def conv(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Any:
    """aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], ...) -> Tensor."""
    pads = _per_dim(padding, weight)
    return _conv(input, weight, bias, stride, [*pads, *pads], dilation, groups)


@translates("aten::conv1d.padding", "aten::conv2d.padding", "aten::conv3d.padding")
def conv_padding(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Sequence[int] = (1,),
    padding: str = "valid",
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Any:
    """aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding="valid", ...) -> Tensor."""
    assert weight.shape is not None
    total = [0] * _spatial(weight)
    if padding == "same":
        kernel = list(weight.shape)[2:]
        sizes = [size for size in kernel if isinstance(size, int)]
        if len(sizes) < len(kernel):
            raise ValueError("padding='same' needs a kernel of a fixed size in ONNX")
        total = [each * (size - 1) for each, size in zip(_per_dim(dilation, weight), sizes, strict=True)]
    # NOTE: where the total is odd, PyTorch pads the end more.
    before = [each // 2 for each in total]
    after = [each - start for each, start in zip(total, before, strict=True)]
    return _conv(input, weight, bias, stride, [*before, *after], dilation, groups)


@translates("aten::convolution")
def convolution(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, ...) -> Tensor."""
    if transposed:
        return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(input, weight, bias, stride, padding, dilation, groups)


@translates("aten::_convolution.deprecated")
def _convolution_deprecated(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
) -> Any:
    """aten::_convolution.deprecated(..., int groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor.

    The flags choose a kernel.
    """
    del benchmark, deterministic, cudnn_enabled
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@translates("aten::_convolution")
def _convolution(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool,
) -> Any:
    """aten::_convolution(..., int groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor.

    Modules that torch.jit.trace made call it. The flags choose a kernel.
    """
    del benchmark, deterministic, cudnn_enabled, allow_tf32
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@translates("aten::conv_transpose1d", "aten::conv_transpose2d.input", "aten::conv_transpose3d.input")
def conv_transpose(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    dilation: Sequence[int] = (1,),
) -> Any:
    """aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], ...) -> Tensor.

    Its weight is (C, O / groups, ...).
    """
    pads, strides, dilations = (_per_dim(each, weight) for each in (padding, stride, dilation))
    wanted = _per_dim(output_padding, weight)
    # NOTE: PyTorch pads less than the stride or the dilation. Where the number is dynamic, the result is padded most, and then cut.
    most = [
        max(pair) - 1 if isinstance(each, ir.Value) else each
        for each, pair in zip(wanted, zip(strides, dilations, strict=True), strict=True)
    ]

    # NOTE: ONNX Runtime pads less than the stride (seen in 1.31). Beyond, fewer elements are cut off at the end, or zeros follow.
    beyond = [each if each >= step else 0 for each, step in zip(most, strides, strict=True)]
    cut = [max(pad - each, 0) for pad, each in zip(pads, beyond, strict=True)]
    zeros = [max(each - pad, 0) for pad, each in zip(pads, beyond, strict=True)]

    def transposed(batch: ir.Value) -> Any:
        result = op.ConvTranspose(
            batch,
            weight,
            None if any(zeros) else bias,
            strides=strides,
            pads=[*pads, *cut],
            output_padding=[each - more for each, more in zip(most, beyond, strict=True)],
            dilations=dilations,
            group=_fixed(groups),
        )
        if any(zeros):
            result = op.Pad(result, [*[0] * (len(zeros) + 4), *zeros])
            result = result if bias is None else op.Add(result, op.Unsqueeze(bias, list(range(1, len(zeros) + 1))))
        for axis, (padded, each) in enumerate(zip(most, wanted, strict=True), start=2):
            if isinstance(each, ir.Value):
                size = op.Shape(result, start=axis, end=axis + 1)
                result = op.Slice(result, [0], op.Sub(size, op.Sub(padded, op.Reshape(each, [1]))), [axis])
        return result

    return _batched(transposed, input, weight)


@translates("aten::im2col")
def im2col(self: ir.Value, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]) -> Any:
    """aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor.

    `self` (N, C, H, W) or (C, H, W), result (N, C * kh * kw, L) or (C * kh * kw, L): the elements in each of L positions of the kernel.
    """
    assert self.shape is not None
    first = len(self.shape) - 2
    before = [*[0] * first, *padding]
    padded = op.Pad(self, [*before, *before]) if any(padding) else self
    sizes = [size + 2 * each if isinstance(size, int) else None for size, each in zip(list(self.shape)[first:], padding, strict=True)]
    options = zip((first, first + 1), sizes, kernel_size, dilation, stride, strict=True)
    rows, columns = (_windows(padded, *each) for each in options)
    # NOTE: rows and their elements are two dims after the first Gather.
    windows = op.Gather(op.Gather(padded, rows, axis=first), columns, axis=first + 2)
    windows = op.Transpose(windows, perm=[*range(first), first, first + 2, first + 1, first + 3])
    channels, elements = self.shape[first - 1], math.prod(kernel_size)
    products = channels * elements if isinstance(channels, int) else op.Mul(op.Shape(self, start=first - 1, end=first), elements)
    known = isinstance(rows, np.ndarray) and isinstance(columns, np.ndarray)
    return op.Reshape(windows, [*[0] * (first - 1), products, rows.shape[1] * columns.shape[1] if known else -1])


def _windows(padded: ir.Value, axis: int, size: int | None, kernel: int, dilation: int, stride: int) -> Any:
    """The indices along an axis of what each element of the kernel meets in each position (kernel, positions)."""
    within = np.arange(kernel, dtype=np.int64)[:, None] * dilation
    reach = dilation * (kernel - 1)
    if size is None:
        return op.Add(op.Range(0, op.Sub(op.Squeeze(op.Shape(padded, start=axis, end=axis + 1)), reach), stride), within)
    return within + np.arange(0, size - reach, stride, dtype=np.int64)


def _conv(
    input: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    pads: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    strides, dilations = _per_dim(stride, weight), _per_dim(dilation, weight)

    def plain(batch: ir.Value) -> Any:
        return op.Conv(batch, weight, bias, strides=strides, pads=pads, dilations=dilations, group=_fixed(groups))

    return _batched(plain, input, weight)


def _fixed(groups: Any) -> int:
    if isinstance(groups, ir.Value):
        raise ValueError("the number of groups depends on a dynamic size, and ONNX needs a fixed number")
    return int(groups)


def _batched(apply: Any, input: ir.Value, weight: ir.Value) -> Any:
    """Adds a batch dim around `apply` where the input has none, as ONNX requires one."""
    assert input.shape is not None
    if len(input.shape) == _spatial(weight) + 1:
        return op.Squeeze(apply(op.Unsqueeze(input, [0])), [0])
    return apply(input)


def _spatial(weight: ir.Value) -> int:
    """The number of dims that the kernel moves along. Their sizes may be dynamic, where a model computes the kernel."""
    assert weight.shape is not None
    return len(weight.shape) - 2


def _per_dim(values: Sequence[int], weight: ir.Value) -> list[int]:
    """One value for each spatial dim; a single value stands for all."""
    return list(values) * _spatial(weight) if len(values) == 1 else list(values)
