"""Elementwise functions, comparisons and choices; bitwise operators, extrema, activations."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from .case import BOOLS, INTS, MIXED, PAIR, Case, X, aten, dynamic, randn, static

WITH_NAN = (torch.tensor([[math.nan, 1.0, -2.0], [3.0, math.nan, math.nan]]), torch.tensor([[0.5, math.nan, -3.0], [2.0, 1.0, math.nan]]))

OTHER_NAMES = (torch.greater, torch.greater_equal, torch.less, torch.less_equal, torch.multiply, torch.subtract, torch.divide)

CASES: dict[str, Case] = {
    "log-sigmoid": dynamic(lambda x: torch.nn.functional.logsigmoid(torch.cat([x * 40, torch.full_like(x, -90.0)])), X),
    "log-sigmoid-double": static(lambda x: torch.nn.functional.logsigmoid(x.double() * 40), X),
    "log-of-sums": static(
        lambda x: (
            [
                add(one * 60, other * 60)
                for add in (torch.logaddexp, torch.logaddexp2)
                for one, other in ((x, x), (x, -x), (x, x.flip(0)), (x, torch.full_like(x, -torch.inf)))
            ]
            + [torch.logaddexp(torch.full_like(x, sign * torch.inf), torch.full_like(x, sign * torch.inf)) for sign in (1, -1)]
        ),
        X,
    ),
    "other-names": dynamic(lambda a, b: [result for each in OTHER_NAMES for result in (each(a, b + 20), each(b + 20, a))], MIXED),
    "number-multiplied": dynamic(lambda x: (torch.multiply(2, x), torch.multiply(x.shape[0], x), torch.multiply(0.5, x > 0)), X),
    "unary": dynamic(
        lambda x: [
            *(x.abs(), x.ceil(), x.cos(), x.exp(), x.floor(), (-x), x.reciprocal(), x.sigmoid(), x.sign(), x.sin(), x.tanh()),
            *((x.abs() + 0.1).log(), x.abs().sqrt(), (x.abs() + 0.1).rsqrt(), x.relu(), x.erf(), torch.special.erf(x)),
            *(functional.silu(x), functional.gelu(x), functional.gelu(x, approximate="tanh")),
        ],
        X,
    ),
    "leaky": dynamic(
        lambda x: [
            result
            for y in (x, torch.cat([x, torch.full_like(x, -torch.inf), torch.full_like(x, torch.nan)]))
            for each in (y, y.double(), y.half())
            for slope in (0.3, 2, x.size(0), 1 / x.size(1))
            for result in (functional.leaky_relu(each, slope), functional.elu(each, slope), functional.celu(each, slope))
        ],
        X,
        tolerance=2e-3,
    ),
    "elu": dynamic(
        lambda x: [aten.elu(each, 1.5, *rest) for each in (x, x.double()) for rest in ((2.5,), (2.5, 0.7), (x.size(0), 1 / x.size(1)))], X
    ),
    "float-power": dynamic(
        lambda x: (
            torch.float_power(x, 3),
            torch.float_power(x.abs(), 1 / x.size(0)),
            torch.float_power(x.abs(), x),
            torch.float_power(2, x),
        ),
        X,
    ),
    "relu-then-bounds": dynamic(
        lambda x: [
            bounded(each.relu())
            for each in (x, x.double(), x.half())
            for bounded in (
                functional.relu6,
                functional.hardtanh,
                lambda y: y.clamp(0.1, 0.5),
                lambda y: y.clamp(math.nan, 1),
                lambda y: y.clamp(0, math.nan),
            )
        ],
        X,
    ),
    "unary-doubles": dynamic(lambda x: (x.double().erf(), x.double().relu(), x.double().sigmoid(), functional.silu(x.double())), X),
    "ints": dynamic(lambda a, b: (a.relu(), a.abs(), a.sign(), -b, torch.sin(a) + torch.sqrt(torch.abs(b))), INTS),
    "two": dynamic(
        lambda a, b: [
            *(a + b, a - b, a * b, a / b, torch.add(a, b, alpha=2), torch.sub(a, b, alpha=0.5), 2 - a),
            *(torch.rsub(a, b), torch.rsub(a, b, alpha=2), aten.rsub.Scalar(a, 2, 3)),
            *(aten.add.Scalar(a, 2, 3), aten.sub.Scalar(a, 2, 3), aten.mul.Scalar(a, 1.5), aten.div.Scalar(a, 4)),
            *(torch.hypot(a, b), a**2, a.abs() ** 0.5, a.abs() ** b),
        ],
        PAIR,
    ),
    "hypotenuses": dynamic(lambda x: torch.hypot(x[:, None], x), (torch.tensor([0.0, -3.0, 1e-30, 3e30, -torch.inf, torch.nan]),)),
    "two-ints": dynamic(
        lambda a, b: (a + b, a * 3 - b, torch.add(a, b, alpha=-2), torch.rsub(a, b), 3 - a, a / b, a // b, a % b, a**2, a.min(b), a.max(b)),
        INTS,
    ),
    "rounding": dynamic(
        lambda a, b: [each(2 * x) for each in (torch.ceil, torch.floor, torch.round, torch.trunc, torch.fix) for x in (a, b)], MIXED
    ),
    "rounding-of-large-ints": static(
        lambda x: [each(x) for each in (torch.ceil, torch.floor, torch.round, torch.trunc, torch.fix)],
        (torch.tensor([2**62 + 1, -(2**62) - 1]),),
        tolerance=0,
    ),
    "remainders": dynamic(
        lambda a, b: (a % a.size(0), a % b.size(0), a % -0.7, -a % (b + 1), a.size(0) % (a.abs() + 1), b % a.size(0), -3 % (b + 1), b % -5),
        MIXED,
    ),
    "infinite-divisors": dynamic(lambda a, b: [each for x in (a, b) for each in (x // torch.inf, x // -torch.inf, a % torch.inf)], PAIR),
    "two-bools": dynamic(lambda a, b: (a + b, a * b, torch.add(a, b, alpha=0), a > b, a >= b, a < b, a <= b, a == b, a != b), BOOLS),
    "comparisons": dynamic(
        lambda a, b: [
            *(a > b, a >= b, a < b, a <= b, a == b, a != b, ~(a > b), a.logical_not(), b.logical_not()),
            *(a > 0.5, a >= 0.5, a < 0.5, a <= 0.5, a == 0.5, a != 0.5, b == 4),
        ],
        MIXED,
    ),
    "bools-and-numbers": dynamic(lambda a, b: (a > 0, b >= 1, a < 1, b <= 0, a == 1, b != 0, a.logical_not()), BOOLS),
    "extrema": dynamic(lambda a, b: (torch.min(a, b), torch.max(a, b), torch.fmin(a, b), torch.fmax(a, b)), PAIR),
    "extrema-of-ints": dynamic(lambda a, b: (torch.fmin(a, b), torch.fmax(a, b)), INTS),
    "bools-that-are-known": static(
        lambda x: [
            *(torch.zeros_like(x).masked_fill(torch.zeros_like(x) > 0, 0), torch.zeros_like(x).masked_fill(x, 0)),
            *(torch.ones_like(x).masked_fill(torch.ones_like(x) > 0, 0), torch.zeros_like(x) | torch.zeros_like(x)),
        ],
        (torch.tensor([[True, False]]),),
    ),
    "choices-between-numbers": dynamic(
        lambda a, b: [
            torch.where(a > b, *numbers)
            for numbers in ((0, -math.inf), (0.5, 1), (True, 2), (True, 2.5), (True, False), (a.shape[0], 2.5), (a.shape[0] / 3, 2))
        ],
        PAIR,
    ),
    "comparisons-with-quotients-of-sizes": dynamic(
        lambda a, b: [
            *(a < a.shape[0] / 3, a >= a.shape[0] / 3, a == a.shape[0] / 2, a != a.shape[0] / 2, (a > 2) < a.shape[0] / 3),
            *(torch.isin(a, a.shape[0] / 2), torch.bucketize(2.5, b[0].sort()[0]), torch.bucketize(a.shape[0], b[0].sort()[0], right=True)),
            a.scatter(0, a.long() * 0, a.shape[0]),
        ],
        INTS,
    ),
    "xlogy": dynamic(
        lambda a, b: [
            *(
                torch.xlogy(a, b.abs()),
                torch.xlogy(a, 2),
                torch.xlogy(a, True),
                torch.xlogy(-3, b.abs()),
                torch.xlogy(a * 0, b * 0 - 1).isnan(),
            ),
            *(torch.xlogy(a.half(), 2.5).sign(), torch.xlogy((a > 0).int(), 2.5), torch.xlogy(a * 0, b * 0), a**True),
        ],
        PAIR,
    ),
    "isin": dynamic(
        lambda a, b: [
            *(torch.isin(a, b), torch.isin(a.round(), b.round(), invert=True), torch.isin(a, b, assume_unique=True)),
            *(torch.isin(a, torch.tensor([3.0, math.nan])), torch.isin(a, 3.0), torch.isin(3, b.nan_to_num(1).int())),
        ],
        WITH_NAN,
    ),
    "extrema-without-nan": dynamic(lambda a, b: [each.nan_to_num(99.0) for each in (torch.fmin(a, b), torch.fmax(a, b))], WITH_NAN),
    "clamps": dynamic(
        lambda a, b: [
            *(each for x in (1 / (a * 0), a) for each in (x.clamp(min=-1), x.clamp(max=1), x.clamp(-1, 0.5), x.clamp(0.5, -1))),
            *(a.clamp(min=b), a.clamp(max=b), a.clamp(b, a[0]), aten.clamp_min(a, 0.5), aten.clamp_max(a, 0.5)),
            *(aten.clamp_min.Tensor(a, b), aten.clamp_max.Tensor(a, b), a.clamp(min=a.size(0)), a.clamp(0, a.size(0))),
        ],
        PAIR,
    ),
    "clamps-of-ints": dynamic(
        lambda a, b: (a.clamp(min=-1), a.clamp(-1, 2), a.clamp(max=1.5), a.clamp(min=b), (a > 0).long().clamp(1)), INTS
    ),
    "bitwise": dynamic(
        lambda a, b: (
            a & b,
            a | b,
            a ^ b,
            a & 3,
            a | 3,
            a ^ 3,
            aten.__and__.Tensor(a, b),
            aten.__or__.Tensor(a, b),
            aten.__xor__.Tensor(a, b),
        ),
        INTS,
    ),
    "bitwise-of-bools": dynamic(
        lambda a, b: [
            *(a & b, a | b, a ^ b, a & True, a | False, a ^ True, ~a),
            *(aten.__and__.Scalar(a, True), aten.__or__.Scalar(a, False), aten.__xor__.Scalar(a, True)),
        ],
        BOOLS,
    ),
    "bitwise-in-place": dynamic(lambda a, b: (a.clone().__iand__(b), a.clone().__ior__(b), a.clone().__ixor__(b)), BOOLS),
    "choices": dynamic(
        lambda a, b: [
            *(torch.where(a > 0, a, b), torch.where(a > 0, a, 0.5), torch.where(a > 0, 2.0, a), torch.where(a > 0, 2.0, 0.5)),
            *(a.masked_fill(a > 0, 7.0), a.masked_fill(b > 4, torch.tensor(7.0)), b.masked_fill(a > 0, -1)),
        ],
        MIXED,
    ),
    "half": dynamic(lambda a, b: (a.half() + b.half() * 0.5, a.half().erf(), a.half().max(b.half())), PAIR, tolerance=1e-2),
    "negative-zero": dynamic(lambda x: (1 / (x.abs() * -0.0), 1 / (x.abs() * 0.0)), (randn(3) + 4,)),
    "large-ints": static(
        lambda a, b: a + b + torch.tensor([2**62 + 1, -(2**62) - 1, 7, -7]).div(torch.tensor(2), rounding_mode="trunc"), INTS
    ),
    "divisors": dynamic(lambda a, b: (torch.gcd(a * 6, b * 4), torch.lcm(a * 6, b * 4), torch.gcd(a, a * 0)), INTS),
    "frexp": static(
        lambda x: [
            *torch.frexp(x * 1e3),
            *torch.frexp(torch.tensor([0.0, 1.0, 0.5, 2.0, 8.0, -1e-30, math.inf])),
            x.sinc(),
            x.round().sinc(),
        ],
        X,
    ),
    "isclose": dynamic(
        lambda a, b: [
            *(a.isclose(b), a.isclose(b, rtol=2.0), a.isclose(a + 1e-7), torch.isclose(a / a.round(), a / a.round(), equal_nan=True)),
            *((a * 9).long().isclose(b.long(), atol=2.5), torch.isclose(a, b / 0)),
        ],
        PAIR,
    ),
    "isclose-of-large": dynamic(
        lambda a, b: [x.isclose(x * (1 + y)) for x in [a.double() * 1e200] for y in (1e-9, 1e-3)] + [a.half().isclose(b.half(), 1.0)], PAIR
    ),
    "quotients-of-all-bytes": static(
        lambda a, b: [
            *(a // 300, a // 44, torch.div(a, 300, rounding_mode="trunc"), torch.div(a, -7, rounding_mode="floor")),
            *(b // -2, torch.div(b, -2, rounding_mode="trunc"), torch.div(b, 300, rounding_mode="floor"), torch.full_like(b, -2)),
        ],
        (torch.arange(-128, 128).to(torch.int8), torch.arange(256).to(torch.uint8)),
    ),
    "rounding-of-ints": dynamic(lambda a, b: (a.ceil() + b.floor() + a.round(), torch.sinc(a), a.isnan(), a.isinf(), a.isfinite()), INTS),
    "bools": dynamic(
        lambda a, b: [
            *(a.sign(), a.isnan(), torch.maximum(a, b), torch.where(a, b, ~b), a.max(1)[0], torch.fmax(a, b)),
            *(torch.heaviside(a, b), torch.isclose(a, b), a.sort(dim=1)[0]),
        ],
        BOOLS,
        runtime="1.24",
    ),
    "signs": dynamic(
        lambda x, y: [
            *(
                x.copysign(y),
                x.copysign(-0.0),
                x.copysign(2.0),
                (x * 0).signbit(),
                x.signbit(),
                (x * 9).long().signbit(),
                (x > 0).signbit(),
            ),
            x.sum().copysign(y),
        ],
        PAIR,
    ),
}
