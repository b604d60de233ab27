"""Convolutions and average pools of double-precision tensors, as products and means of windows: ONNX Runtime has no kernels (1.31)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

_aten = torch.ops.aten
_Sizes = int | Sequence[int]


def _each(given: _Sizes, rank: int) -> list[int]:
    """One number for each dim. A list of one number stands for all dims."""
    numbers = [given] if isinstance(given, int) else list(given)
    return numbers * rank if len(numbers) == 1 else numbers


def _windows(x: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """The windows of `x` (N, C, then sizes): (N, C, then one dim for the places along each dim, then one for the elements along each)."""
    rank = len(kernel)
    for at, (size, step, apart) in enumerate(zip(kernel, stride, dilation, strict=True)):
        dim = 2 + 2 * at
        places = (x.shape[dim] - apart * (size - 1) - 1) // step + 1
        first = torch.arange(places, device=x.device).unsqueeze(-1) * step
        elements = first + torch.arange(size, device=x.device) * apart
        x = x.index_select(dim, elements.reshape(-1)).unflatten(dim, (places, size))
    return x.permute(0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))


def _padded(x: Tensor, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Tensor:
    """`x` with elements around it; a negative number cuts elements off."""
    for dim, (left, right) in enumerate(zip(before, after, strict=True), 2):
        start, end = max(-left, 0), max(-right, 0)
        x = x.narrow(dim, start, x.shape[dim] - start - end) if start or end else x
        around = [x.new_full([max(each, 0) if at == dim else size for at, size in enumerate(x.shape)], value) for each in (left, right)]
        x = torch.cat([around[0], x, around[1]], dim) if left or right else x
    return x


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Sizes = 1,
    padding: _Sizes | str = 0,
    dilation: _Sizes = 1,
    groups: int = 1,
) -> Tensor:
    kernel = weight.shape[2:]
    rank, count = len(kernel), weight.shape[0]
    strides, dilations = _each(stride, rank), _each(dilation, rank)
    if isinstance(padding, str):
        total = [apart * (size - 1) if padding == "same" else 0 for size, apart in zip(kernel, dilations, strict=True)]
        before, after = [each // 2 for each in total], [each - each // 2 for each in total]
    else:
        before = after = _each(padding, rank)
    x = _padded(input if input.ndim == rank + 2 else input.unsqueeze(0), before, after)
    windows = _windows(x, kernel, strides, dilations)
    batch, places = windows.shape[0], windows.shape[2 : 2 + rank]
    columns = windows.reshape(batch, groups, weight.shape[1], math.prod(places), math.prod(kernel)).permute(1, 0, 3, 2, 4)
    # NOTE: not `@`, which makes numbers of dynamic sizes here in torch 2.11.
    product = torch.bmm(columns.flatten(3).flatten(1, 2), weight.reshape(groups, count // groups, -1).mT)
    result = product.reshape(groups, batch, math.prod(places), -1).permute(1, 0, 3, 2).reshape(batch, count, *places)
    if bias is not None:
        result = result + bias.reshape(-1, *[1] * rank)
    return result if input.ndim == rank + 2 else result.squeeze(0)


def _transposed(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Sizes = 1,
    padding: _Sizes = 0,
    output_padding: _Sizes = 0,
    groups: int = 1,
    dilation: _Sizes = 1,
) -> Tensor:
    """The convolution of the input, with zeros between its elements, and the mirrored weights."""
    kernel = weight.shape[2:]
    rank = len(kernel)
    strides, cut, more, dilations = (_each(given, rank) for given in (stride, padding, output_padding, dilation))
    x = input if input.ndim == rank + 2 else input.unsqueeze(0)
    for dim, step in enumerate(strides, 2):
        size = x.shape[dim]
        if step > 1:
            spread = torch.cat([x.unsqueeze(dim + 1), *[torch.zeros_like(x).unsqueeze(dim + 1)] * (step - 1)], dim + 1)
            x = spread.flatten(dim, dim + 1).narrow(dim, 0, (size - 1) * step + 1)
    around = [apart * (size - 1) - less for size, apart, less in zip(kernel, dilations, cut, strict=True)]
    x = _padded(x, around, [each + extra for each, extra in zip(around, more, strict=True)])
    mirrored = weight.flip(list(range(2, 2 + rank))).unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
    result = _convolution(x, mirrored, bias, dilation=dilations, groups=groups)
    return result if input.ndim == rank + 2 else result.squeeze(0)


def _any_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: _Sizes,
    padding: _Sizes,
    dilation: _Sizes,
    transposed: bool,
    output_padding: _Sizes,
    groups: int,
) -> Tensor:
    if transposed:
        return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolution(input, weight, bias, stride, padding, dilation, groups)


def _average_pool(
    rank: int,
    self: Tensor,
    kernel_size: _Sizes,
    stride: _Sizes | None = None,
    padding: _Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    kernel, around = _each(kernel_size, rank), _each(padding, rank)
    strides = _each(stride, rank) if stride else kernel
    x = self if self.ndim == rank + 2 else self.unsqueeze(0)
    counted = _padded(x.new_ones([1, 1, *x.shape[2:]]), around, around, 1.0 if count_include_pad else 0.0)
    x = _padded(x, around, around)
    for dim, (size, step, pad) in enumerate(zip(kernel, strides, around, strict=True) if ceil_mode else (), 2):
        places = (x.shape[dim] - size + step - 1) // step + 1
        # NOTE: a window that would begin in the padding behind the input does not count.
        places = places - torch.sym_ite((places - 1) * step >= x.shape[dim] - pad, 1, 0)
        more = torch.sym_max((places - 1) * step + size - x.shape[dim], 0)
        x, counted = (
            torch.cat([each, each.new_zeros([more if at == dim else old for at, old in enumerate(each.shape)])], dim)
            for each in (x, counted)
        )
    sums, counts = _sums(x, kernel, strides), _sums(counted, kernel, strides)
    result = sums / (divisor_override or counts)
    return result if self.ndim == rank + 2 else result.squeeze(0)


def _sums(x: Tensor, kernel: Sequence[int], strides: Sequence[int]) -> Tensor:
    rank = len(kernel)
    return _windows(x, kernel, strides, [1] * rank).sum(list(range(2 + rank, 2 + 2 * rank)))


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Tensor]] = {
    **{getattr(_aten, f"conv{rank}d").default: _convolution for rank in (1, 2, 3)},
    **{getattr(_aten, f"conv{rank}d").padding: _convolution for rank in (1, 2, 3)},
    _aten.conv_transpose1d.default: _transposed,
    _aten.conv_transpose2d.input: _transposed,
    _aten.conv_transpose3d.input: _transposed,
    _aten.convolution.default: _any_convolution,
    **{getattr(_aten, f"avg_pool{rank}d").default: functools.partial(_average_pool, rank) for rank in (1, 2, 3)},
}
