"""The definition of `flex_attention` computes what torch computes in eager mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from onnxplain.torch_internals import flex_attention as internals

Tensor = torch.Tensor

BIAS = torch.randn(4, 5, 5, generator=torch.Generator().manual_seed(1))
SCORES: dict[str, Callable[..., Tensor]] = {
    "same": lambda score, b, h, m, n: score,
    "of all indices": lambda score, b, h, m, n: score * (b + 1) - h + 0.5 * m - 0.25 * n,
    "of a table": lambda score, b, h, m, n: score + BIAS[h, m, n],
}
MASKS: dict[str, Callable[..., Tensor]] = {
    "all": lambda b, h, m, n: m >= 0,
    "causal without a row": lambda b, h, m, n: (m >= n) & (m != 2),
    "of head and batch": lambda b, h, m, n: n <= b + h,
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("heads", "dtype"), [(4, torch.float32), (2, torch.float64)], ids=["equal-heads", "grouped"])
def test_equals_eager(score: str, mask: str, heads: int, dtype: torch.dtype) -> None:
    query, key, value = (torch.randn(2, count, 5, size, dtype=dtype) for count, size in ((4, 3), (heads, 3), (heads, 6)))
    blocks = create_block_mask(MASKS[mask], 2, 4, 5, 5, device="cpu")
    options: Any = {"scale": 0.3, "enable_gqa": True, "return_lse": True}
    want, logarithms = flex_attention(query, key, value, SCORES[score], blocks, **options)
    got, in_base_2, largest = internals.definition(query, key, value, SCORES[score], blocks.as_tuple(), 0.3, {})
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(in_base_2 * math.log(2), logarithms, rtol=1e-4, atol=1e-5, check_dtype=False)
    assert bool((largest <= in_base_2 + 1e-5).all())
    assert got.dtype is dtype


def test_buffers_follow_the_indices() -> None:
    query, key, value = torch.randn(3, 2, 4, 5, 3)
    bias, window = torch.randn(4), torch.tensor(2)
    blocks = (None, lambda b, h, m, n, window: (m - n).abs() < window)
    got, *_ = internals.definition(query, key, value, lambda s, b, h, m, n, bias: s + bias[h], blocks, 1.0, {}, (bias,), (window,))
    scores = query @ key.mT + bias[:, None, None]
    near = (torch.arange(5)[:, None] - torch.arange(5)).abs() < 2
    torch.testing.assert_close(got, scores.where(near, -math.inf).softmax(-1) @ value, rtol=1e-4, atol=1e-5)
