"""Resizing of uint8 images, which PyTorch computes in whole numbers: in one dim after the other, with rounded weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

from . import antialiasing
from .graphs import arguments

_aten = torch.ops.aten
_Weigh = Callable[[Tensor], Tensor]

_MOST = 1 << 15
"""No weight as a whole number reaches this one."""
_BITS = 22
"""By how many bits weights are moved at most."""
_REACH = 2
"""How many elements on each side a new one may be made of."""


def _cubic(distance: Tensor) -> Tensor:
    """As `antialiasing.cubic`, with the coefficient -0.75."""
    near = (1.25 * distance - 2.25) * distance * distance + 1
    far = ((3.75 - 0.75 * distance) * distance - 6) * distance + 3
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0))


def _with_antialiasing(weigh: _Weigh, self: Tensor, output_size: Sequence[Any], align_corners: bool, *factors: float | None) -> Tensor:
    """aten::_upsample_bilinear2d_aa: `self` (N, C, H, W) of uint8 in the size `output_size`."""
    return _resized(weigh, self, output_size, align_corners, factors or (None, None), antialias=True)


def _without(
    weigh: _Weigh, input: Tensor, output_size: Sequence[Any] | None, align_corners: bool, scale_factors: Sequence[float] | None = None
) -> Tensor:
    """aten::upsample_bilinear2d.vec: `input` (N, C, H, W) of uint8 in the size `output_size`, or in its own times `scale_factors`."""
    if output_size is None:
        assert scale_factors is not None
        output_size = [torch.sym_int(size * factor) for size, factor in zip(input.shape[2:], scale_factors, strict=True)]
    return _resized(weigh, input, output_size, align_corners, scale_factors or (None, None), antialias=False)


def _resized(
    weigh: _Weigh, image: Tensor, sizes: Sequence[Any], align_corners: bool, factors: Sequence[float | None], *, antialias: bool
) -> Tensor:
    values = image.double()
    for dim in (3, 2):
        given = image.shape[dim], sizes[dim - 2], align_corners, factors[dim - 2]
        moved = values if dim == 3 else values.mT
        moved = _sums(moved, _weights(weigh, *given, antialias=antialias, device=image.device))
        values = moved if dim == 3 else moved.mT
    return values.to(torch.uint8)


def _sums(values: Tensor, weights: Tensor) -> Tensor:
    """The sums along the last dim, each rounded to a byte. Float64 holds all whole numbers on the way."""
    powers = 2.0 ** torch.arange(1, _BITS + 1, dtype=torch.float64, device=weights.device)
    bits = (0.5 + weights.amax() * powers < _MOST).sum()
    unit = 2.0 ** bits.double()
    whole = (weights.abs() * unit + 0.5).floor() * weights.sign()
    return ((antialiasing.times(values, whole) + unit / 2) / unit).floor().clamp(0, 255)


def _weights(
    weigh: _Weigh, size: Any, new: Any, align_corners: bool, factor: float | None, *, antialias: bool, device: torch.device
) -> Tensor:
    """The weight of each old element in each new one (`new`, `size`)."""
    scale = antialiasing.scale_of(size, new, align_corners, factor)
    centre = 0.0 if align_corners and not antialias else 0.5
    places = functools.partial(torch.arange, dtype=torch.float64, device=device)
    centres = ((places(new) + centre) * scale).unsqueeze(-1)
    if antialias:
        weights = weigh((places(size) + centre - centres).abs() / torch.sym_max(scale, 1.0))
        return weights / weights.sum(-1, keepdim=True)
    # NOTE: the elements at the ends stand for those beyond.
    around = places(-_REACH, size + _REACH)
    stands_for = around.clamp(0, size - 1).unsqueeze(-1) == places(size)
    return weigh((around + centre - centres).abs()) @ stands_for.double()


_OURS: Mapping[OpOverload, Callable[..., Tensor]] = {
    **{
        getattr(_aten, f"_upsample_{name}2d_aa").default: functools.partial(_with_antialiasing, weigh)
        for name, weigh in (("bilinear", antialiasing.linear), ("bicubic", antialiasing.cubic))
    },
    _aten.upsample_bilinear2d.vec: functools.partial(_without, antialiasing.linear),
    _aten.upsample_bicubic2d.vec: functools.partial(_without, _cubic),
}

OPERATORS = frozenset(_OURS)
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Tensor] | None:
    """The decomposition for a node whose image is of uint8."""
    if node.target not in _OURS:
        return None
    assert isinstance(node.target, OpOverload)
    given = arguments(node)
    image = given["self" if "self" in given else "input"].meta["val"]
    return _OURS[node.target] if image.dtype is torch.uint8 else None
