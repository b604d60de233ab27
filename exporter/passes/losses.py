"""Decompositions of losses of which torch's own are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload


def _multilabel_margin_loss(x: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """aten::multilabel_margin_loss_forward: for each row the margins between its targets and all other classes; and the targets as a mask.

    A row's targets end before its first -1.
    """
    # NOTE: torch's decomposition takes class 0 for the targets from there on, and counts its margins (read in torch 2.13).
    rows, targets = torch.atleast_2d(x), torch.atleast_2d(target)
    size = rows.shape[1]
    is_given = (targets == -1).cumsum(1) == 0
    known = torch.where(is_given, targets, 0)
    classes = torch.arange(size, device=x.device)
    is_target = ((known[:, :, None] == classes) & is_given[:, :, None]).any(1)
    margins = (1 - rows.gather(1, known)[:, :, None] + rows[:, None, :]).clamp_min(0)
    counted = is_given[:, :, None] & ~is_target[:, None, :]
    losses = torch.where(counted, margins, 0).sum((1, 2)) / size
    loss = losses.mean() if reduction == 1 else losses.sum() if reduction == 2 else losses.reshape(x.shape[:-1])
    return loss, is_target.to(x.dtype).reshape(x.shape)


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    torch.ops.aten.multilabel_margin_loss_forward.default: _multilabel_margin_loss,
}
"""The decompositions by operator."""
