"""Replicating pads with negative sizes: PyTorch repeats an edge that it has cut off as well, ONNX only one that is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .graphs import arguments

_PAD = torch.ops.aten.pad.default
OPERATORS = frozenset({_PAD, *(getattr(torch.ops.aten, f"replication_pad{rank}d").default for rank in (1, 2, 3))})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition of such a node; None for other nodes."""
    given = arguments(node)
    is_replicating = node.target is not _PAD or given["mode"] == "replicate"
    crops = any(isinstance(each, int) and each < 0 for each in given.get("pad", given.get("padding", ())))
    return _replicated if is_replicating and crops else None


def _replicated(self: Tensor, pad: Sequence[Any], *_: object) -> Tensor:
    """aten::pad, and aten::replication_pad1d, 2d and 3d: each element is the nearest one of `self`."""
    for dim, before, after in zip(range(self.ndim - 1, -1, -1), pad[::2], pad[1::2], strict=False):
        if all(isinstance(each, int) and each == 0 for each in (before, after)):
            continue
        size = self.shape[dim]
        places = torch.arange(size + before + after, device=self.device) - before
        self = self.index_select(dim, places.clamp(0, size - 1))
    return self
