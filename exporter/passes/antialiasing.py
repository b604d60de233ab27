"""Resizing with antialiasing as a product with one matrix for each dim, where ONNX's Resize would weigh other elements than PyTorch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

from .graphs import arguments


def linear(distance: Tensor) -> Tensor:
    """The weight of an element at a distance of a new one, by linear interpolation."""
    return (1 - distance).clamp(min=0)


def cubic(distance: Tensor) -> Tensor:
    """The weight of an element at a distance of a new one, by cubic convolution with the coefficient -0.5."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((2.5 - 0.5 * distance) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0))


def scale_of(size: Any, new: Any, align_corners: bool, factor: float | None) -> Any:
    """The distance of new elements, in old ones."""
    if align_corners:
        # NOTE: 0 for a single new element.
        return (size - 1) * torch.sym_min(new - 1, 1) / torch.sym_max(new - 1, 1)
    return size / new if factor is None else 1 / factor


def _weights(weigh: Callable[[Tensor], Tensor], size: Any, new: Any, align_corners: bool, factor: float | None, like: Tensor) -> Tensor:
    """The weight of each old element in each new one (`new`, `size`)."""
    scale = scale_of(size, new, align_corners, factor)
    places = functools.partial(torch.arange, dtype=like.dtype, device=like.device)
    centers = (places(new) + 0.5) * scale
    weights = weigh((places(size) + 0.5 - centers.unsqueeze(-1)).abs() / torch.sym_max(scale, 1.0))
    return weights / weights.sum(-1, keepdim=True)


def _resized(
    weigh: Callable[[Tensor], Tensor],
    self: Tensor,
    output_size: list[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """The image `self` (N, C, H, W) in the size `output_size`, as PyTorch computes it on CPUs."""
    wide = self if self.dtype is torch.float64 else self.float()
    rows, columns = (
        _weights(weigh, size, new, align_corners, factor, wide)
        for size, new, factor in zip(self.shape[2:], output_size, (scales_h, scales_w), strict=True)
    )
    return times(times(wide, columns).mT, rows).mT.to(self.dtype)


def times(values: Tensor, matrix: Tensor) -> Tensor:
    """The products of `matrix` and the vectors along the last dim."""
    # NOTE: torch 2.11 decomposes a product of tensors with more dims for fixed sizes only.
    *rest, size = values.shape
    product = values.reshape(math.prod(rest), size) @ matrix.mT
    return product.reshape(*rest, matrix.shape[0])


_OURS: Mapping[OpOverload, Callable[..., Tensor]] = {
    getattr(torch.ops.aten, name).default: functools.partial(_resized, weigh)
    for name, weigh in (("_upsample_bilinear2d_aa", linear), ("_upsample_bicubic2d_aa", cubic))
}


OPERATORS = frozenset(_OURS)
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Tensor] | None:
    """The decomposition for a node that Resize does not compute: aligned corners, or factors other than the quotients of the sizes."""
    if node.target not in _OURS:
        return None
    assert isinstance(node.target, OpOverload)
    given = arguments(node)
    value = given["self"].meta["val"]
    factors = zip(value.shape[2:], given["output_size"], (given["scales_h"], given["scales_w"]), strict=True)
    is_exact = not given["align_corners"] and all(_is_quotient(*each) for each in factors)
    return _OURS[node.target] if value.is_floating_point() and not is_exact else None


def _is_quotient(size: Any, new: Any, factor: Any) -> bool:
    """Whether `factor` is the quotient of the new and the old size, or asks for it."""
    if factor is None or (isinstance(factor, float) and factor.is_integer()):
        return True
    return all(isinstance(each, int | float) for each in (size, new, factor)) and size * factor == new
