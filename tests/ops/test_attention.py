"""Scaled dot-product attention on other sizes, and its cost."""

from __future__ import annotations

import pytest
import torch
from ops.cases.attention import CASES, K, Q, V, additive
from parity import check
from torch.nn.functional import scaled_dot_product_attention as attention

import onnxplain


@pytest.mark.parametrize("name", ["plain", "causal", "mask", "row-that-sees-nothing", "float-row-that-sees-nothing", "grouped"])
def test_other_sizes(name: str) -> None:
    function, args = CASES[name].function, CASES[name].args
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
    plain = onnxplain.export(CASES["plain"].function, (Q, K, V))
    masked = onnxplain.export(CASES["known-mask-that-sees-all"].function, (Q, K, V))
    large = onnxplain.export(
        lambda q, k, v: attention(q, k, v, torch.ones(1, 1, 5, 1, dtype=torch.bool).expand(2, 1, 5, 4000)),
        (Q, torch.randn(2, 4, 4000, 8), torch.randn(2, 4, 4000, 6)),
    )
    counts = [sum(1 for _ in each.model.graph) for each in (plain, masked, large)]
    assert counts[0] == counts[1] == counts[2]
