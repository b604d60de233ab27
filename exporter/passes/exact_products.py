"""Products of whole numbers: ONNX Runtime's ReduceProd computes them as floats (seen in 1.31), which is not exact from 2**53 on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .graphs import arguments

_aten = torch.ops.aten


def _along(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """The last of the running products, of which the first is 1."""
    numbers = self.to(dtype or torch.int64)
    if not self.ndim:
        return numbers
    dim %= self.ndim
    one = numbers.new_ones([1 if at == dim else size for at, size in enumerate(numbers.shape)])
    product = torch.cat([one, numbers], dim).cumprod(dim).narrow(dim, self.shape[dim], 1)
    return product if keepdim else product.squeeze(dim)


def _of_all(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return _along(self.reshape(-1), 0, dtype=dtype)


OPERATORS = frozenset({_aten.prod.default, _aten.prod.dim_int})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition for a product of whole numbers that is a whole number; None for others."""
    if node.target not in OPERATORS:
        return None
    value, result = arguments(node)["self"].meta.get("val"), node.meta.get("val")
    if not isinstance(value, Tensor) or value.dtype is torch.bool or not isinstance(result, Tensor) or result.dtype is not torch.int64:
        return None
    return _along if node.target is _aten.prod.dim_int else _of_all
