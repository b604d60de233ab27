"""Arithmetic with sizes."""

from __future__ import annotations

import math
from typing import Any

import torch

from .case import PAIR, Case, X, aten, dynamic, randn


def integers(x: torch.Tensor) -> list[Any]:
    a, b = x.size(0), x.size(1)
    return [
        *(a + b, a - b, a * b, b // a, -b // a, b % a, -b % a, a**2, -a, torch.sym_max(a, b), torch.sym_min(a, b), x.numel()),
        *(7 // a, 7 - b, 2**a, torch.sym_not(a > b)),
    ]


def floats(x: torch.Tensor) -> list[Any]:
    a, b = x.size(0), x.size(1)
    half = a / b
    return [
        *(half, half + a, half * 3, half - b, a * 0.5 - half, (a * 1.5) // b, -half, a**0.5, torch.sym_float(a), b / half),
        *(torch.sym_sqrt(b), torch.sym_max(half, b), torch.sym_min(half, 0.5)),
    ]


def remainders(x: torch.Tensor) -> list[Any]:
    a, b = x.size(0), x.size(1)
    numbers = [a / 3, -a / 3, b * 0.3, -b * 0.3]
    return [each for number in numbers for divisor in (1, 0.1, -0.75, a) for each in (number % divisor, number // divisor)]


def rounded(x: torch.Tensor) -> list[Any]:
    part = x.size(1) * 0.75
    return [
        math.floor(part),
        math.ceil(part),
        math.trunc(part),
        math.trunc(-part),
        math.floor(-part),
        math.ceil(-part),
        round(part),
        round(x.size(1) / 2),
    ]


def compared(x: torch.Tensor, mask: torch.Tensor) -> list[Any]:
    a, b = mask.nonzero().size(0), x.size(0)
    return [
        *(a > b, a >= b, a < b, a <= b, a == b, a != b, torch.sym_not(a > b), torch.sym_ite(a > b, a, b), torch.sym_ite(a == b, a + 1, b)),
        *(a > b * 0.5, a == b / 2, a != b * 1.5, a * 1.5 <= b, a >= 4, a < 4),
        *((a > b) & (a < 4), (a > b) | (a < 4)),
    ]


CASES: dict[str, Case] = {
    "sum-of-sizes": dynamic(lambda x: torch.ones(torch.sym_sum([x.size(0), x.size(1), x.size(2)])) * 2, X),
    "integers": dynamic(integers, PAIR[:1]),
    "floats": dynamic(floats, PAIR[:1]),
    "remainders": dynamic(remainders, (randn(2, 4),)),
    "item": dynamic(
        lambda x: (
            math.ceil(torch.scalar_tensor(x.size(0) * 0.29, dtype=torch.float64).item() * 100),
            *(x.size(0) * each.sum().item() for each in (x > 0, (x * 3).int(), x.round())),
        ),
        (randn(100),),
    ),
    "local-scalar": dynamic(
        lambda x: x * (x > 0).sum().item(), (randn(9),), replaced={aten.item.default: aten._local_scalar_dense.default}
    ),
    "rounded": dynamic(rounded, (randn(2, 100),)),
    "compared": dynamic(compared, (randn(3), torch.tensor([0, 1, 1, 0, 1]))),
    "bits": dynamic(
        lambda x: (x * (x.size(0) & -2) + (x.size(1) | 5), torch.ones(x.size(0) >> 1), x * (x.size(1) << 3), x * (3 << x.size(0))), PAIR[:1]
    ),
    "sizes": dynamic(lambda x: (x * 2, x.size(0), x.size(1) + 1), X),
    "truncated": dynamic(lambda x: math.trunc(x.size(0) * 0.75), PAIR[:1], replaced={math.trunc: torch.sym_int}),
    "count": dynamic(lambda x: (x * 2, x.size(0)), (randn(5),), replaced={aten.sym_size.int: aten.sym_numel.default}),
    "exact": dynamic(lambda x: (math.floor(x.size(0) * 0.29), math.floor(x.size(0) * 2.0**-20 * 2**20)), (randn(98),)),
    "with-tensors": dynamic(
        lambda x: [
            *(x / x.size(1) + x.size(0) ** 0.5, (x > x.size(1)) | (x.size(0) * x < 1), x + torch.zeros(x.size(0), 1, x.size(2))),
            *(x.sum(dim=(1, 2)) + torch.arange(x.size(0)), x.new_ones((x.size(0) * 2 + 1) // 2 - 1 + x.size(1) % 3)),
            *(torch.full((2,), 1.5) * x.size(0), torch.nn.functional.interpolate(x, scale_factor=2.0)),
        ],
        X,
    ),
}
