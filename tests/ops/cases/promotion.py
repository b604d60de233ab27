"""Operands of different dtypes: what PyTorch promotes implicitly is cast in the graph."""

from __future__ import annotations

import torch
from torch.nn import functional

from .case import BOOLS, INTS, MIXED, Case, X, dynamic

CASES: dict[str, Case] = {
    "int-plus-float": dynamic(lambda a, b: a + 1.5 * b, INTS),
    "float-times-int": dynamic(lambda a, b: a * b - b, MIXED),
    "compare-float-int": dynamic(lambda a, b: (a > b, a == b, a <= 2), MIXED),
    "floor-divide-float-by-int": dynamic(lambda a, b: (a // (b.int() + 1), b // a.size(0), b // 2.5, 7 // (b + 1), a.abs() // 0.1), MIXED),
    "bitwise-of-int-and-bool": dynamic(lambda a, b: (b & (a > 0), b | (a > 0), (a > 0) ^ b), MIXED),
    "logsumexp-of-ints": dynamic(lambda a, b: (a.logsumexp(1), b.logsumexp(1)), MIXED),
    "where": dynamic(lambda a, b: torch.where(a > 0, a, b), MIXED),
    "cat-of-dtypes": dynamic(lambda a, b: torch.cat([a, b]), MIXED),
    "sum-of-bools": dynamic(lambda a, b: (a.sum(), b.sum(dim=1)), BOOLS),
    "mean-of-casts": dynamic(lambda a, b: (a.double() + b).mean(), MIXED),
    "times-test-of-size": dynamic(
        lambda a, b: (a * (a.size(0) == min(a.size(1), 3)), b + (b.size(0) > b.size(1)), b == (b.size(0) == b.size(1))),
        MIXED,
    ),
    "brain-float": dynamic(lambda x: functional.conv1d(x.bfloat16(), torch.ones(2, 8, 3).bfloat16() / 8).float(), X, tolerance=2e-2),
}
