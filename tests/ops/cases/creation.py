"""Tensors made of sizes and numbers."""

from __future__ import annotations

import torch

from .case import PAIR, Case, X, aten, dynamic, static

CASES: dict[str, Case] = {
    "constants-of-numbers": static(
        lambda x: [
            *(torch.kaiser_window(4), torch.kaiser_window(4, False), torch.kaiser_window(4, True, 8.0), torch.bartlett_window(4)),
            *(torch.blackman_window(4, False), torch.hamming_window(4, False), torch.hamming_window(4, True, 0.5, 0.4)),
            *(torch.fft.fftfreq(4, 0.5), torch.fft.rfftfreq(6), x * torch.range(0, 6, 2), torch.bartlett_window(0)),
        ],
        (torch.ones(4),),
    ),
    "arange-backwards": dynamic(
        lambda x: (x[torch.arange(x.size(0) - 1, -1, -1)], x[torch.arange(-x.size(0), 0)], torch.arange(-1, x.size(0), 2)), X
    ),
    "arange-of-bools": static(lambda x: x + torch.arange(False, True, True, dtype=torch.float32), (torch.ones(3),)),
    "arange": dynamic(
        lambda x: [
            *(torch.arange(x.size(0)), torch.arange(2, x.size(1)), torch.arange(1, 3 * x.size(0), 2), torch.arange(9, 1, -3) + x.size(0)),
            *(torch.arange(0.5, 4.2, 0.7) * x.size(0), torch.arange(x.size(0), dtype=torch.float32) / 2),
            *(torch.arange(0.9, 4.9, 1.3, dtype=torch.int64) + x.size(0), torch.arange(0.5, 5.5, 1.5, dtype=torch.int32) + x.size(0)),
        ],
        (torch.ones(3, 8),),
    ),
    "arange-of-floats": dynamic(
        lambda x: torch.arange(x.size(0) * 0.5, x.size(1) * 1.0, 0.75, dtype=torch.float64),
        (torch.ones(3, 8),),
    ),
    "hamming-window": static(
        lambda x: [
            *(torch.hamming_window(size) * x[0, 0, 0] for size in (0, 1, 2, 7)),
            torch.hamming_window(6, dtype=torch.float64) * x,
        ],
        X,
    ),
    "of-size": dynamic(
        lambda x: [
            *(torch.full((x.size(0), 2), 2.5), torch.full((x.size(0),), 3), torch.full((x.size(0),), True), torch.zeros(x.size(1), 2)),
            *(torch.ones(x.size(1), dtype=torch.int64), torch.empty(x.size(0), 2).fill_(4.0)),
            torch.full((2,), x.size(0), dtype=torch.float32),
            *(x.new_full((2, x.size(0)), 7), x.new_zeros(x.size(0)), x.new_ones(x.size(1)), x.new_empty(x.size(1)).fill_(1.0)),
            *(x.new_full((x.size(0),), 7, dtype=torch.int64), x.new_zeros(x.size(0), dtype=torch.bool), x.new_ones(2, dtype=torch.float64)),
        ],
        PAIR[:1],
    ),
    "like": dynamic(
        lambda x: [
            *(torch.full_like(x, 2.5) * x, torch.full_like(x, 7, dtype=torch.int64), torch.zeros_like(x) + x, torch.ones_like(x) * x),
            *(torch.zeros_like(x, dtype=torch.bool), torch.ones_like(x, dtype=torch.float64), torch.empty_like(x).fill_(2.0) + x),
        ],
        X,
    ),
    "permuted": static(lambda x: (aten.empty_permuted([3, 8], [1, 0], dtype=torch.float32) > x[..., 0]) | (x[..., 0] > -99), X),
    "steps-between-whole-numbers": static(
        lambda a, b: [
            torch.linspace(start, end, 50, dtype=dtype)
            for start, end in ((a, b), (a, 0.7), (-3.6, b))
            for dtype in (torch.int64, torch.int32, torch.float32)
        ],
        (torch.tensor(4.3), torch.tensor(0.9)),
    ),
}
