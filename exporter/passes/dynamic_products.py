"""Products whose decompositions in PyTorch, in C++, fix dynamic sizes or refuse them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload


def _cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The product of both vectors along `dim`, each divided by its norm, which is at least `eps`."""
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    vectors = torch.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    one, other = (each / torch.linalg.vector_norm(each, dim=dim, keepdim=True).clamp(min=eps) for each in vectors)
    similarity: Tensor = (one * other).sum(dim)
    return similarity


def _kron(self: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of `self` times all of `other`. The tensor with fewer dims gets dims of size 1 in front."""
    rank = max(self.ndim, other.ndim)
    outer, inner = ((1,) * (rank - each.ndim) + each.shape for each in (self, other))
    blocks = self.reshape([size for each in outer for size in (each, 1)])
    product = blocks * other.reshape([size for each in inner for size in (1, each)])
    return product.reshape([one * another for one, another in zip(outer, inner, strict=True)])


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    torch.ops.aten.cosine_similarity.default: _cosine_similarity,
    torch.ops.aten.kron.default: _kron,
}
"""The decompositions by operator."""
