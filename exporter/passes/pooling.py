"""Decompositions of pooling whose windows differ in size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload


def _adaptive_max_pool(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its position in the flattened dims of the windows.

    Window i of n along a dim of size s has the elements from floor(i * s / n) to ceil((i + 1) * s / n).
    """
    count = len(output_size)
    sizes = x.shape[-count:]
    position = torch.zeros([1] * (2 * count), dtype=torch.int64, device=x.device)
    inside = torch.ones([1] * (2 * count), dtype=torch.bool, device=x.device)
    windows, widths = x, []
    for dim, (size, length) in enumerate(zip(sizes, output_size, strict=True)):
        index = torch.arange(length, device=x.device).unsqueeze(1)
        starts, ends = index * size // length, ((index + 1) * size + length - 1) // length
        widths.append(_widest(size, length))
        places = starts + torch.arange(widths[-1], device=x.device)
        # NOTE: a window with fewer elements repeats its last one, which is not its first maximum.
        elements = torch.minimum(places, ends - 1)
        windows = windows.index_select(x.ndim - count + dim, elements.flatten())
        shape = [1] * (2 * count)
        shape[dim], shape[count + dim] = length, widths[-1]
        position = position * size + elements.reshape(shape)
        inside = inside & (places < ends).reshape(shape)
    split = [each for length, width in zip(output_size, widths, strict=True) for each in (length, width)]
    outer = x.ndim - count
    windows = windows.reshape(*x.shape[:outer], *split)
    order = [*range(outer), *range(outer, outer + 2 * count, 2), *range(outer + 1, outer + 2 * count, 2)]
    windows = windows.permute(order).flatten(-count)
    position, inside = (each.flatten(-count) for each in (position, inside))
    value, best = torch.where(inside, windows, -torch.inf).max(-1)
    return value, position.expand(windows.shape).gather(-1, best.unsqueeze(-1)).squeeze(-1)


def _widest(size: int, length: int) -> int:
    """The size of the largest of `length` windows; no less than that if the size of the dim is dynamic."""
    if isinstance(size, torch.SymInt) or isinstance(length, torch.SymInt):
        return size if isinstance(length, int) and length == 1 else size // length + 2
    return max(-(-(i + 1) * size // length) - i * size // length for i in range(length))


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    torch.ops.aten.adaptive_max_pool2d.default: _adaptive_max_pool,
    torch.ops.aten.adaptive_max_pool3d.default: _adaptive_max_pool,
}
"""The decompositions by operator."""
