"""The definition of `flex_attention` in operators that torch can trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .symbols import Symbol

_WITHOUT = "flex_attention has no translation"
_INDEXING = Symbol("torch._dynamo._trace_wrapped_higher_order_op:TransformGetItemToIndex", without=_WITHOUT)

Tensor = torch.Tensor


def can_be_traced() -> bool:
    """Whether the installed torch has what `definition` needs."""
    return _INDEXING.is_present


def definition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: Sequence[Any],
    scale: float,
    options: object,
    score_buffers: Sequence[Any] = (),
    mask_buffers: Sequence[Any] = (),
) -> tuple[Tensor, Tensor, Tensor]:
    """What `torch.ops.higher_order.flex_attention` computes.

    Args:
        query: Shape (B, H, M, E).
        key: Shape (B or 1, H / G, N, E), with G queries for each key.
        value: Shape (B or 1, H / G, N, V).
        score_mod: The function of a score, the indices b, h, m, n and `score_buffers`.
        block_mask: The mask; its last element is the function of the indices b, h, m, n and `mask_buffers`.
        scale: The factor of the scores.
        options: Those of a kernel, which change no result.
        score_buffers: Tensors and sizes.
        mask_buffers: Tensors and sizes.

    Returns:
        The result of shape (B, H, M, V), and for each row the logarithm to the base 2 of the sum, and the maximum in its unit.
    """
    # NOTE: read in torch 2.11, 2.13 and 2.15, _higher_order_ops/flex_attention.py: math_attention, whose results these are.
    del options
    groups = query.size(1) // key.size(1)
    if groups != 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    dtype = torch.float64 if query.dtype is torch.float64 else torch.float32
    scores = query.to(dtype) @ key.to(dtype).transpose(-2, -1) * scale
    indices = [torch.arange(size, device=scores.device) for size in scores.shape]
    with _INDEXING.value():
        kept = _over_indices(block_mask[-1], (), len(mask_buffers))(*indices, *mask_buffers)
        changed = _over_indices(score_mod, (0,), len(score_buffers))(scores, *indices, *score_buffers)
    changed = torch.where(kept, changed.to(dtype), -math.inf)
    largest = changed.amax(-1)
    is_masked = largest == -math.inf
    weights = torch.where(is_masked[..., None], 0.0, changed.softmax(-1))
    total = torch.where(is_masked, -math.inf, changed.logsumexp(-1))
    return weights.to(query.dtype) @ value.to(query.dtype), total / math.log(2), largest / math.log(2)


def _over_indices(function: Callable[..., Tensor], first: tuple[int, ...], buffers: int) -> Callable[..., Tensor]:
    """`function` for all indices b, h, m, n at once."""
    rest = (None,) * buffers
    for position in range(3, -1, -1):
        own: list[int | None] = [None] * 4
        own[position] = 0
        function = torch.vmap(function, in_dims=(*first, *own, *rest))
    return function
