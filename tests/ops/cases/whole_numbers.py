"""Arithmetic of whole numbers that floats would round."""

from __future__ import annotations

import torch

from .case import MIXED, Case, dynamic, randn, static

WIDTHS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
LARGE = torch.tensor([2**40 + 12345, -(2**40) - 12345, 7, -7, 1, 0, 2**62 + 1])
DIVISORS = torch.tensor([[3], [-3], [2**30 + 1], [-5]])
SHIFTS = torch.tensor([[0], [1], [5], [7], [8], [31], [63], [64], [-1]])
ROUNDINGS = (None, "trunc", "floor")

CASES: dict[str, Case] = {
    "powers": dynamic(
        lambda x, y: [
            *(x**y, x.int() ** y.clamp(max=9).int(), x.abs().to(torch.uint8) ** y.abs().clamp(max=3).to(torch.uint8), 2**y, (-3) ** y),
            *(x**exponent for exponent in (0, 1, 2, 3, 4, 7, 13, True)),
            *(x.float() ** y.float(), x.float() ** 3, 2.5**x, x.float() ** -2, x**0.5 * 0),
        ],
        (torch.tensor([3, -3, 2, -2, 1, -1, 0]), torch.tensor([[-2], [-1], [0], [1], [5], [39], [38]])),
        tolerance=1e-5,
        runtime="1.24",
    ),
    "powers-of-numbers": dynamic(
        lambda x, n: [
            *(2**x, (-3) ** x, 2.5**x, True**x, torch.pow(2, x.half()), torch.pow(3, x.double()), torch.pow(2, x.int()), 2.5**n, 3**n),
            *(x.shape[0] ** x, x.shape[0] ** n, (x.shape[0] / 2) ** x, (x.shape[0] / 2) ** n, n**x, x**n, n.int() ** n, n ** x.double()),
            *((-3) ** n.to(torch.uint8), (-3) << n, (-3) << n.int()),
        ],
        (torch.tensor([1.5, -2.0, 0.0, 0.25]), torch.tensor([2, 0, 5, 3])),
        tolerance=1e-3,
        runtime="1.24",
    ),
    "large-powers": static(
        lambda x, y: (x**y, x**37, x**38, 3**y), (torch.tensor([3, -3, 1, -1]), torch.tensor([[36], [37], [38], [39]])), tolerance=0
    ),
    "quotients": dynamic(
        lambda x, y: [
            *(torch.div(x, divisor, rounding_mode=each) for divisor in (3, -7, y) for each in ROUNDINGS[1:]),
            *(torch.divide(x, y, rounding_mode="trunc"), torch.ops.aten.div.Scalar_mode(x, 3, rounding_mode="trunc"), x.fmod(y), x.fmod(7)),
            *(torch.ops.aten.divide.Scalar_mode(x, 3, rounding_mode="floor"), (x % 100).to(torch.uint8).fmod(7)),
        ],
        (LARGE, DIVISORS),
        tolerance=0,
    ),
    "quotients-of-floats": dynamic(
        lambda x, y: [
            *(torch.div(a, b, rounding_mode=each) for a, b in ((x, 0.3), (x, x.flip(-1)), (x, y + 1), (y, 2.5)) for each in ROUNDINGS),
            *(x.fmod(0.7), x.fmod(y + 1)),
        ],
        MIXED,
    ),
    "shifts": dynamic(
        lambda x, y: [
            *(
                shifted
                for dtype in WIDTHS
                for a, b in [(x.to(dtype), y.to(dtype))]
                for shifted in (a << b, a >> b, a << 3, a >> 3, a >> 40)
            ),
            *(torch.bitwise_left_shift(x, y), torch.bitwise_right_shift(x, y), torch.bitwise_left_shift(5, y)),
            *(
                torch.bitwise_right_shift(-5000, y),
                x << 3,
                x >> 3,
                torch.bitwise_left_shift(x, 2),
                torch.bitwise_right_shift(x, 2),
                x.int() << y,
            ),
        ],
        (torch.tensor([1, -1, 3, -100, 100, 120, 5000]), SHIFTS),
        tolerance=0,
        runtime="1.24",
    ),
    "truth": dynamic(
        lambda x: [
            test(each, dim=dim, keepdim=keepdim)
            for test in (torch.any, torch.all)
            for each in (x > 0, x, (x > 0).to(torch.uint8))
            for dim, keepdim in (((), True), ((0, 1), False), ((-1, 0), True))
        ],
        (randn(3, 4, 5).relu(),),
    ),
}
