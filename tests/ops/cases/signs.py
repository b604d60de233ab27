"""Signs and angles, with both zeros, infinities and NaN, at every pair of which functions of two numbers are compared."""

from __future__ import annotations

import math

import torch

from .case import INTS, Case, dynamic, randn, static

_NUMBERS = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -0.5, 1e30, -1e-30])
_EDGES = (torch.stack([_NUMBERS, _NUMBERS.flip(0), _NUMBERS.roll(4)]),)

CASES: dict[str, Case] = {
    "of-one": dynamic(lambda x: (x.sign(), torch.sgn(x), x.angle(), x.signbit(), x.copysign(-x)), _EDGES),
    "of-doubles": dynamic(lambda x: (x.double().sign(), x.double().angle()), _EDGES),
    "of-halves": static(lambda x: (x.sign(), x.angle()), (_EDGES[0].clamp(-9, 9).half(),)),
    "of-ints": dynamic(lambda a, b: (a.sign(), torch.sgn(a), torch.angle(a), torch.atan2(a, b), a.heaviside(b)), INTS),
    "heaviside": dynamic(lambda x: torch.heaviside(x[0, :, None], x[1]), _EDGES),
    "angles-of-points": dynamic(lambda x: (torch.atan2(x[0, :, None], x[0]), torch.atan2(x, -x)), _EDGES),
    "angles-of-points-in-double": dynamic(
        lambda x, y: torch.atan2(x.double(), y.double() * 1e3), (randn(3, 4), randn(3, 4)), tolerance=1e-12
    ),
    "logit": dynamic(lambda x: (torch.logit(x.abs() / 4), torch.logit(x, eps=0.2)), _EDGES),
}
