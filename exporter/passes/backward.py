"""Decompositions of the operators of backward passes, for models that differentiate in `forward`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

from . import composites

_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}

_Ints = Sequence[int]


def _convolution(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: _Ints | None,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    transposed: bool,
    output_padding: _Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """aten::convolution_backward: the gradients of the input (N, C, *S), the weights and the bias; `output_mask` tells which are needed."""
    del bias_sizes, output_padding
    rank = input.ndim - 2
    steps, pads, gaps = (list(each) * (rank if len(each) == 1 else 1) for each in (stride, padding, dilation))
    of_input = of_weight = None
    if output_mask[0]:
        if transposed:
            of_input = _CONVOLUTIONS[rank](grad, weight, None, steps, pads, gaps, groups)
        else:
            least = [
                (size - 1) * step - 2 * pad + gap * (kernel - 1) + 1
                for size, step, pad, gap, kernel in zip(grad.shape[2:], steps, pads, gaps, weight.shape[2:], strict=True)
            ]
            rest = [size - short for size, short in zip(input.shape[2:], least, strict=True)]
            of_input = _TRANSPOSED[rank](grad, weight, None, steps, pads, rest, groups, gaps)
    if output_mask[1]:
        image, kernel = (grad, input) if transposed else (input, grad)
        parts = zip(image.chunk(groups, 1), kernel.chunk(groups, 1), strict=True)
        of_weight = torch.cat([_of_weight(*part, steps, pads, gaps, weight.shape[2:]) for part in parts])
    of_bias = grad.sum([0, *range(2, grad.ndim)]) if output_mask[2] else None
    return of_input, of_weight, of_bias


def _of_weight(image: Tensor, kernel: Tensor, steps: _Ints, pads: _Ints, gaps: _Ints, sizes: _Ints) -> Tensor:
    """The gradient of one group's weights: a convolution in which the batch is summed, and strides and dilations exchange places."""
    rank = image.ndim - 2
    made = _CONVOLUTIONS[rank](image.transpose(0, 1), kernel.transpose(0, 1), None, gaps, pads, steps).transpose(0, 1)
    for dim, size in enumerate(sizes, 2):
        made = made.narrow(dim, 0, size)
    return made


def _average_pool(
    grad: Tensor,
    self: Tensor,
    kernel_size: _Ints,
    stride: _Ints,
    padding: _Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """aten::avg_pool2d_backward and avg_pool3d_backward: each window spreads its share over its elements."""
    rank = len(kernel_size)
    kernels, pads = (list(each) * (rank if len(each) == 1 else 1) for each in (kernel_size, padding))
    steps = list(stride) * (rank if len(stride) == 1 else 1) or kernels
    sizes, count = self.shape[-rank:], grad.shape[-rank:]
    window = torch.ones(1, 1, *kernels, dtype=grad.dtype, device=grad.device)
    # NOTE: the last windows of ceil_mode end beyond the padding, which is not counted.
    padded = [size + 2 * pad for size, pad in zip(sizes, pads, strict=True)]
    ends = [max((n - 1) * step + kernel, size) for n, step, kernel, size in zip(count, steps, kernels, padded, strict=True)]
    own = padded if count_include_pad else sizes
    starts = [0 if count_include_pad else pad for pad in pads]
    if divisor_override is not None:
        share = grad / divisor_override
    elif count_include_pad and not ceil_mode:
        share = grad / math.prod(kernels)
    else:
        present = torch.ones(1, 1, *own, dtype=grad.dtype, device=grad.device)
        around = [
            each for start, size, end in zip(starts[::-1], own[::-1], ends[::-1], strict=True) for each in (start, end - start - size)
        ]
        share = grad / _CONVOLUTIONS[rank](F.pad(present, around), window, None, steps).reshape(count)
    # NOTE: elements behind the last window are in none.
    rest = [end - (n - 1) * step - kernel for end, n, step, kernel in zip(ends, count, steps, kernels, strict=True)]
    spread = _TRANSPOSED[rank](share.reshape(-1, 1, *count), window, None, steps, 0, rest)
    for dim, (size, pad) in enumerate(zip(sizes, pads, strict=True), 2):
        spread = spread.narrow(dim, pad, size)
    return spread.reshape(self.shape)


def _adaptive_average_pool(rank: int) -> Callable[[Tensor, Tensor], Tensor]:
    def backward(grad: Tensor, self: Tensor) -> Tensor:
        """aten::_adaptive_avg_pool2d_backward and 3d: each window spreads its share over its elements, one dim after another.

        Window i of n along a dim of size s has the elements from floor(i * s / n) to ceil((i + 1) * s / n).
        """
        for dim in range(-rank, 0):
            size, count = self.shape[dim], grad.shape[dim]
            window, place = torch.arange(count, device=grad.device).unsqueeze(1), torch.arange(size, device=grad.device)
            starts, ends = window * size // count, ((window + 1) * size + count - 1) // count
            shares = ((place >= starts) & (place < ends)).to(grad.dtype) / (ends - starts)
            grad = (grad.movedim(dim, -1) @ shares).movedim(-1, dim)
        return grad

    return backward


def _maximum(rank: int) -> Callable[..., Tensor]:
    def backward(grad: Tensor, self: Tensor, *arguments: Any) -> Tensor:
        """The gradient of a maximum over windows: each window's at the position of its maximum in the flattened last `rank` dims.

        For aten::max_pool2d_with_indices_backward, adaptive_max_pool2d_backward and those of 3 dims. Their last argument has the positions.
        """
        flat = torch.zeros_like(self).flatten(-rank)
        return flat.scatter_add(-1, arguments[-1].flatten(-rank), grad.flatten(-rank)).reshape(self.shape)

    return backward


def _replication_pad(grad: Tensor, self: Tensor, padding: _Ints) -> Tensor:
    """aten::replication_pad1d_backward, 2d and 3d: the sum over all places where an element stands."""

    def padded(value: Tensor) -> Tensor:
        for index in range(len(padding) // 2):
            dim, size = value.ndim - 1 - index, value.shape[-1 - index]
            before, after = padding[2 * index : 2 * index + 2]
            places = torch.arange(-before, size + after, device=value.device).clamp(0, size - 1)
            value = value.index_select(dim, places)
        return value

    result: Tensor = torch.func.vjp(padded, self)[1](grad)[0]
    return result


def _shrink(grad: Tensor, self: Tensor, lambd: float) -> Tensor:
    """aten::hardshrink_backward and softshrink_backward."""
    return torch.where(self.abs() <= lambd, 0, grad)


def _cdist(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """aten::_cdist_backward: the gradient of the first matrix (*, N, M), of the distances to the rows of the second one (*, P, M)."""
    apart = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return (_slope(apart, cdist.unsqueeze(-1), p) * grad.unsqueeze(-1)).sum(-2)


def _slope(apart: Tensor, norm: Tensor, p: float) -> Tensor:
    """The gradient of a p-norm over the last dim. It is 0 where the norm is."""
    if p == 0:
        return torch.zeros_like(apart)
    if p == 1:
        return apart.sign()
    if math.isinf(p):
        return apart.sign() * (apart.abs() == norm)
    # NOTE: for p < 2, the power of an element that is 0 is infinite.
    powers = apart if p == 2 else apart.sign() * torch.where(apart == 0, 0, apart.abs() ** (p - 1))
    return torch.where(norm == 0, 0, powers / norm ** (p - 1))


def _weight_norm(grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """aten::_weight_norm_interface_backward: the gradients of the directions and of the lengths."""
    del norms
    others = [each for each in range(v.ndim) if each != dim % v.ndim]
    backward: Any = torch.func.vjp(lambda v, g: v * (g / torch.linalg.vector_norm(v, 2, others, keepdim=True)), v, g)[1]
    made: tuple[Tensor, Tensor] = backward(grad)
    return made


def _pdist(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    """aten::_pdist_backward."""
    first, second = composites.pairs(self.shape[0], self.device)
    each = _slope(self[first] - self[second], pdist.unsqueeze(-1), p) * grad.unsqueeze(-1)
    return torch.zeros_like(self).index_add(0, first, each).index_add(0, second, -each)


_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "_adaptive_avg_pool2d_backward": _adaptive_average_pool(2),
    "_adaptive_avg_pool3d_backward": _adaptive_average_pool(3),
    "_cdist_backward": _cdist,
    "_pdist_backward": _pdist,
    "_weight_norm_interface_backward": _weight_norm,
    "adaptive_max_pool2d_backward": _maximum(2),
    "adaptive_max_pool3d_backward": _maximum(3),
    "avg_pool2d_backward": _average_pool,
    "avg_pool3d_backward": _average_pool,
    "convolution_backward": _convolution,
    "hardshrink_backward": _shrink,
    # NOTE: torch 2.11 does not decompose the first.
    "max_pool2d_with_indices_backward": _maximum(2),
    "max_pool3d_with_indices_backward": _maximum(3),
    "replication_pad1d_backward": _replication_pad,
    "replication_pad2d_backward": _replication_pad,
    "replication_pad3d_backward": _replication_pad,
    "softshrink_backward": _shrink,
}
DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {getattr(torch.ops.aten, name).default: each for name, each in _BY_NAME.items()}
"""The decompositions by operator."""
