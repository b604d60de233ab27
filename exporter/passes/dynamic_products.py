"""Products whose decompositions in PyTorch, in C++, fix dynamic sizes or refuse them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


def _tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    """The sum of products over pairs of dims. A dim of size 1 goes with one of any size: the other tensor is summed along it.

    NOTE: PyTorch asks whether a size is 1 in the example, also if it is dynamic.
    """
    pairs = [(one % self.ndim, another % other.ndim) for one, another in zip(dims_self, dims_other, strict=True)]
    for one, another in pairs:
        if _is_one(self.shape[one]) != _is_one(other.shape[another]):
            if _is_one(self.shape[one]):
                other = other.sum(another, keepdim=True, dtype=other.dtype)
            else:
                self = self.sum(one, keepdim=True, dtype=self.dtype)
    if self.ndim == other.ndim == len(pairs) == 1:
        return self.dot(other)
    summed_self, summed_other = ([pair[side] for pair in pairs] for side in (0, 1))
    free_self, free_other = (
        [dim for dim in range(each.ndim) if dim not in summed] for each, summed in ((self, summed_self), (other, summed_other))
    )
    sizes = [self.shape[dim] for dim in free_self], [other.shape[dim] for dim in free_other]
    count = math.prod(self.shape[dim] for dim in summed_self)
    left = self.permute(free_self + summed_self).reshape(math.prod(sizes[0]), count)
    right = other.permute(summed_other + free_other).reshape(count, math.prod(sizes[1]))
    return (left @ right).reshape(sizes[0] + sizes[1])


def _is_one(size: int | torch.SymInt) -> bool:
    """Whether a size is 1, and is so for all inputs."""
    return isinstance(size, int) and size == 1


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    torch.ops.aten.cosine_similarity.default: _cosine_similarity,
    torch.ops.aten.kron.default: _kron,
    torch.ops.aten.tensordot.default: _tensordot,
}
"""The decompositions by operator."""
