"""Nearest neighbours by their exact places: torch decomposes them into one index of all dims, whose fake kernel fails for some sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import NEAREST_EXACT, OpOverload


def _by_factors(input: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None) -> Tensor:
    """aten::_upsample_nearest_exact2d.vec: to a size, or by a factor for each dim."""
    if scale_factors is None:
        assert output_size is not None
        return _to_size(input, output_size)
    sizes = [torch.sym_int(size * factor) for size, factor in zip(input.shape[2:], scale_factors, strict=True)]
    return _to_size(input, sizes, *scale_factors)


def _to_size(input: Tensor, output_size: Sequence[Any], *factors: float | None) -> Tensor:
    """aten::_upsample_nearest_exact2d: each element is the one of `input` (N, C, ...) that its centre is in."""
    result = input
    for dim, size in enumerate(output_size, 2):
        factor = factors[dim - 2] if factors else None
        step = input.shape[dim] / size if factor is None else 1 / factor
        places = ((torch.arange(size, dtype=torch.float32, device=input.device) + 0.5) * step).to(torch.int64)
        result = result.index_select(dim, places)
    return result


DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    **{operator.default: _to_size for operator in NEAREST_EXACT},
    **{operator.vec: _by_factors for operator in NEAREST_EXACT},
}
