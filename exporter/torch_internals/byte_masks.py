"""Masks of bytes, which eager mode takes for truths in indices and in `where`, with a warning. torch.export refuses them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .python_values import is_a

_TAKING = (torch.where, Tensor.where, Tensor.__getitem__, Tensor.__setitem__)


def as_truths(function: object, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call of torch, with masks of truths in place of those of bytes where eager mode takes both."""
    if not any(function is each for each in _TAKING):
        return args
    # NOTE: the mask of the method of tensors is its second argument, as an index is.
    at = 0 if function is torch.where else 1
    return tuple(_as_truths(each) if place == at else each for place, each in enumerate(args))


def _as_truths(mask: Any) -> Any:
    if isinstance(mask, tuple):
        return tuple(map(_as_truths, mask))
    return mask.bool() if is_a(mask, Tensor) and mask.dtype is torch.uint8 else mask
