"""Scaled dot-product attention in every form that it has."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import scaled_dot_product_attention as attention

from .case import Case, randn, static

Q, K, V = randn(2, 4, 5, 8), randn(2, 4, 7, 8), randn(2, 4, 7, 6)
SEEN = randn(2, 1, 5, 7) > -0.5
NOTHING_SEEN = SEEN.index_fill(2, torch.tensor([1, 4]), False)


def additive(seen: torch.Tensor) -> torch.Tensor:
    return torch.zeros(seen.shape).masked_fill(~seen, -math.inf)


CASES: dict[str, Case] = {
    "plain": static(lambda q, k, v: attention(q, k, v), (Q, K, V)),
    "batches-that-broadcast": static(
        lambda q, k, v: (attention(q[0], k, v), attention(q, k[0], v[0]), attention(q[0], k, v[0])), (Q, K, V)
    ),
    "scale": static(lambda q, k, v: attention(q, k, v, scale=0.3), (Q, K, V)),
    "causal": static(lambda q, k, v: attention(q, k, v, is_causal=True), (Q, K, V)),
    "causal-long": static(lambda q, k, v: attention(q, k, v, is_causal=True), tuple(randn(1, 2, 120, 4) for _ in range(3))),
    "mask": static(lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, SEEN)),
    "mask-of-keys": static(lambda q, k, v, m: attention(q, k, v, m[:, :, :1]), (Q, K, V, SEEN)),
    "row-that-sees-nothing": static(lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, NOTHING_SEEN)),
    "known-mask": static(lambda q, k, v: attention(q, k, v, SEEN[:1].tril(3)), (Q, K, V)),
    "known-mask-that-sees-nothing": static(lambda q, k, v: attention(q, k, v, NOTHING_SEEN[:1]), (Q, K, V)),
    "known-mask-that-sees-all": static(lambda q, k, v: attention(q, k, v, torch.ones(5, 7, dtype=torch.bool)), (Q, K, V)),
    "float-mask": static(lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, randn(5, 7))),
    "float-row-that-sees-nothing": static(lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, additive(NOTHING_SEEN))),
    "known-float-mask": static(lambda q, k, v: attention(q, k, v, additive(SEEN[:1]) + 0.5), (Q, K, V)),
    "known-float-mask-that-sees-nothing": static(lambda q, k, v: attention(q, k, v, additive(NOTHING_SEEN[:1])), (Q, K, V)),
    "no-heads": static(lambda q, k, v: attention(q[:, 0], k[:, 0], v[:, 0]), (Q, K, V)),
    "five-dims": static(lambda q, k, v: attention(q[None], k[None], v[None]), (Q, K, V)),
    "grouped": static(lambda q, k, v: attention(q, k[:, :2], v[:, :2], enable_gqa=True), (Q, K, V)),
    "half": static(lambda q, k, v: attention(q.half(), k.half(), v.half(), is_causal=True).float(), (Q, K, V), tolerance=1e-2),
    # NOTE: older versions of ONNX Runtime fuse a transposition into a MatMul of doubles, for which they have no kernel.
    "double": static(lambda q, k, v: attention(q.double(), k.double(), v.double()), (Q, K, V), runtime="1.24"),
}
