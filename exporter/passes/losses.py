"""Decompositions of losses of which torch's own are wrong, or take no dynamic sizes."""

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


def _margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """aten::margin_ranking_loss: by how much the difference, signed by the target, falls short of the margin."""
    return _reduced((margin - target * (input1 - input2)).clamp_min(0), reduction)


def _hinge_embedding_loss(x: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """aten::hinge_embedding_loss: the number itself for the target 1, and what it lacks of the margin for -1; otherwise their sum."""
    return _reduced(torch.where(target != -1, x, 0) + torch.where(target != 1, (margin - x).clamp_min(0), 0), reduction)


def _cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """aten::cosine_embedding_loss: what the cosine lacks of 1 for the target 1, and by how much it is over the margin for -1."""
    dim = target.ndim
    squares = [(each * each).sum(dim) + 1e-12 for each in (input1, input2)]
    cosine = (input1 * input2).sum(dim) / (squares[0] * squares[1]).sqrt()
    losses = torch.where(target == 1, 1 - cosine, 0) + torch.where(target == -1, (cosine - margin).clamp_min(0), 0)
    return _reduced(losses, reduction)


def _reduced(losses: Tensor, reduction: int) -> Tensor:
    return losses.mean() if reduction == 1 else losses.sum() if reduction == 2 else losses


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    torch.ops.aten.cosine_embedding_loss.default: _cosine_embedding_loss,
    torch.ops.aten.hinge_embedding_loss.default: _hinge_embedding_loss,
    torch.ops.aten.margin_ranking_loss.default: _margin_ranking_loss,
    torch.ops.aten.multilabel_margin_loss_forward.default: _multilabel_margin_loss,
}
"""The decompositions by operator."""
