"""Histograms of integers, which PyTorch makes on GPUs only, as those of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _histc(self: Tensor, *args: Any) -> Tensor:
    """aten::histc: how many elements are in each of some intervals of equal width, in the dtype of `self`."""
    return torch.histc(self.float(), *args).to(self.dtype)


OPERATORS = frozenset({torch.ops.aten.histc.default})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Tensor] | None:
    """The decomposition for a node whose input is no float."""
    value = node.args[0]
    assert isinstance(value, torch.fx.Node)
    return None if value.meta["val"].is_floating_point() else _histc
