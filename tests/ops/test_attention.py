"""Scaled dot-product attention: equal to eager in every form that it has, on other data and other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnxruntime
import pytest
import torch
from parity import check
from torch.nn.functional import scaled_dot_product_attention as attention

import onnxplain

Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 6)
SEEN = torch.rand(2, 1, 5, 7) > 0.3
NOTHING_SEEN = SEEN.index_fill(2, torch.tensor([1, 4]), False)


def additive(seen: torch.Tensor) -> torch.Tensor:
    return torch.zeros(seen.shape).masked_fill(~seen, -math.inf)


CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "plain": (lambda q, k, v: attention(q, k, v), (Q, K, V)),
    "scale": (lambda q, k, v: attention(q, k, v, scale=0.3), (Q, K, V)),
    "causal": (lambda q, k, v: attention(q, k, v, is_causal=True), (Q, K, V)),
    "causal-long": (lambda q, k, v: attention(q, k, v, is_causal=True), tuple(torch.randn(1, 2, 120, 4) for _ in range(3))),
    "mask": (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, SEEN)),
    "mask-of-keys": (lambda q, k, v, m: attention(q, k, v, m[:, :, :1]), (Q, K, V, SEEN)),
    "row-that-sees-nothing": (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, NOTHING_SEEN)),
    "known-mask": (lambda q, k, v: attention(q, k, v, SEEN[:1].tril(3)), (Q, K, V)),
    "known-mask-that-sees-nothing": (lambda q, k, v: attention(q, k, v, NOTHING_SEEN[:1]), (Q, K, V)),
    "known-mask-that-sees-all": (lambda q, k, v: attention(q, k, v, torch.ones(5, 7, dtype=torch.bool)), (Q, K, V)),
    "float-mask": (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, torch.randn(5, 7))),
    "float-row-that-sees-nothing": (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, additive(NOTHING_SEEN))),
    "no-heads": (lambda q, k, v: attention(q[:, 0], k[:, 0], v[:, 0]), (Q, K, V)),
    "five-dims": (lambda q, k, v: attention(q[None], k[None], v[None]), (Q, K, V)),
    "grouped": (lambda q, k, v: attention(q, k[:, :2], v[:, :2], enable_gqa=True), (Q, K, V)),
    "half": (lambda q, k, v: attention(q.half(), k.half(), v.half(), is_causal=True).float(), (Q, K, V)),
    "double": (lambda q, k, v: attention(q.double(), k.double(), v.double()), (Q, K, V)),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str) -> None:
    function, args = CASES[name]
    if name == "double" and tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 24):
        pytest.skip("ONNX Runtime fuses a transposition into a MatMul of doubles here, for which it has no kernel")
    program = onnxplain.export(function, args)
    tolerance = 1e-2 if name == "half" else 1e-4
    check(function, program, tuple(arg.flip(0) for arg in args), tolerance)


@pytest.mark.parametrize("name", ["plain", "causal", "mask", "row-that-sees-nothing", "float-row-that-sees-nothing", "grouped"])
def test_other_sizes(name: str) -> None:
    function, args = CASES[name]
    batch, length, seen = torch.export.Dim("batch"), torch.export.Dim("length"), torch.export.Dim("seen")
    by_name = {0: {0: batch, 2: length}, 1: {0: batch, 2: seen}, 2: {0: batch, 2: seen}, 3: {0: batch, 2: length, 3: seen}}
    program = onnxplain.export(lambda *all_: function(*all_), args, dynamic_shapes=(tuple(by_name[each] for each in range(len(args))),))
    for sizes in ((3, 5, 7), (1, 9, 4)):
        check(function, program, tuple(_resized(arg, sizes, position) for position, arg in enumerate(args)))


def _resized(arg: torch.Tensor, sizes: tuple[int, int, int], position: int) -> torch.Tensor:
    batch, length, seen = sizes
    if position == 3:
        shape = (batch, 1, length, seen)
        mask = torch.rand(shape) > 0.6
        mask[:, :, 0] = False
        return mask if arg.dtype is torch.bool else additive(mask)
    return torch.randn(batch, 4, length if position == 0 else seen, arg.shape[-1])


def test_a_mask_that_everything_sees_costs_nothing() -> None:
    plain = onnxplain.export(*CASES["plain"])
    masked = onnxplain.export(*CASES["known-mask-that-sees-all"])
    large = onnxplain.export(
        lambda q, k, v: attention(q, k, v, torch.ones(1, 1, 5, 1, dtype=torch.bool).expand(2, 1, 5, 4000)),
        (Q, torch.randn(2, 4, 4000, 8), torch.randn(2, 4, 4000, 6)),
    )
    counts = [sum(1 for _ in each.model.graph) for each in (plain, masked, large)]
    assert counts[0] == counts[1] == counts[2]
