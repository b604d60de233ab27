"""The similarity of vectors. PyTorch's decomposition, in C++, does not broadcast dynamic sizes."""

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


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {torch.ops.aten.cosine_similarity.default: _cosine_similarity}
"""The decompositions by operator."""
