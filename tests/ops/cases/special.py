"""Special functions: near zero, in the tails, at poles, of ints."""

from __future__ import annotations

import math

import torch

from .case import Case, dynamic, static

special = torch.special
REAL = (
    torch.tensor(
        [-30.0, -9.5, -7.9, -3.25, -2.0, -1.0, -0.4, 0.0, 1e-3, 0.3, 1.0, 1.9, 2.1, 4.9, 5.1, 8.1, 12.0, 30.0, math.inf, math.nan]
    ),
)
DOUBLES = (torch.tensor([-9.5, -3.25, -1.0, -0.4, 0.0, 0.3, 0.9, 1.1, 1.9, 2.1, 3.7, 4.9, 5.1, 7.7, 8.3, 12.0], dtype=torch.float64),)
POSITIVE = (torch.tensor([1e-3, 0.2, 0.6, 1.0, 1.9, 2.1, 4.9, 5.1, 8.3, 20.0, 70.0]),)
PROBABILITIES = (torch.tensor([0.0, 1e-30, 1e-6, 0.02, 0.2, 0.5, 0.7, 0.9, 0.999, 1.0, 1.5, -0.5]),)
DEGREES = (torch.tensor([[-1.2, -1.0, -0.7, 0.0, 0.3, 1.0, 2.5]]), torch.tensor([[-1.0], [0.0], [1.0], [2.7], [5.0], [7.0], [9.0]]))
AT = (torch.tensor([[0.5, 1.0, 2.5, 9.0, 40.0, 0.0]]), torch.tensor([[0.0], [0.3], [1.0], [2.6], [8.0], [45.0], [math.inf]]))

CASES: dict[str, Case] = {
    "bessel": static(
        lambda x: [
            *(torch.i0(x), special.i0e(x), special.i1(x), special.i1e(x), special.modified_bessel_i0(x), special.modified_bessel_i1(x)),
            *(special.modified_bessel_k0(x), special.modified_bessel_k1(x)),
            *(special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x)),
            *(special.bessel_j0(x), special.bessel_j1(x), special.bessel_y0(x), special.bessel_y1(x)),
            *(special.spherical_bessel_j0(x), special.airy_ai(x)),
        ],
        REAL,
        runtime="1.24",
    ),
    "bessel-double": static(
        lambda x: [
            *(torch.i0(x), special.i0e(x), special.i1(x), special.i1e(x)),
            *(special.modified_bessel_k0(x), special.modified_bessel_k1(x), special.bessel_j0(x), special.bessel_j1(x)),
            *(special.bessel_y0(x), special.bessel_y1(x), special.airy_ai(x)),
        ],
        DOUBLES,
        tolerance=1e-14,
        runtime="1.24",
    ),
    "bessel-to-the-last-digits": static(
        lambda x: special.bessel_j0(x), (torch.linspace(3.5, 5, 40, dtype=torch.float64),), tolerance=8e-16, runtime="1.24"
    ),
    # The factor makes the tolerance a relative one.
    "bessel-of-large-to-the-last-digits": static(
        lambda x: [special.i0e(x) * 1e6, special.i1e(x) * 1e6], (torch.linspace(8.1, 80, 200, dtype=torch.float64),), tolerance=1e-15
    ),
    "bessel-dynamic": dynamic(lambda x: (torch.i0(x), special.bessel_y0(x), special.airy_ai(x)), POSITIVE, runtime="1.24"),
    "bessel-large-double": static(
        lambda x: [
            *(special.i0e(x), special.i1e(x), special.modified_bessel_k0(x), special.modified_bessel_k1(x)),
            *(special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x), special.bessel_j0(x), special.bessel_j1(x)),
            *(special.bessel_y0(x), special.bessel_y1(x), special.spherical_bessel_j0(x), special.airy_ai(x), special.airy_ai(-x)),
        ],
        (torch.cat([torch.linspace(1e-3, 12, 40, dtype=torch.float64), torch.tensor([19.0, 33.0, 47.5, 104.5], dtype=torch.float64)]),),
        tolerance=1e-12,
        runtime="1.24",
    ),
    "gamma-double": static(
        lambda x: (
            torch.lgamma(x),
            torch.digamma(x),
            torch.polygamma(1, x + 0.05),
            torch.polygamma(2, x + 10),
            torch.polygamma(3, x.abs() + 1),
        ),
        DOUBLES,
        tolerance=1e-9,
        runtime="1.24",
    ),
    "gamma": static(
        lambda x: [
            *(torch.lgamma(x), torch.digamma(x), torch.polygamma(0, x), torch.polygamma(1, x), torch.polygamma(2, x)),
            *(torch.digamma(x.nan_to_num(0.0, 9.0).long()), torch.mvlgamma(x.abs().nan_to_num(1.0, 9.0) + 2, 3)),
        ],
        REAL,
        runtime="1.24",
    ),
    "incomplete-gamma": static(lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), AT),
    "zeta": static(lambda x, q: (special.zeta(x + 1, q), special.zeta(2.5, q), special.zeta(x, 3.0)), AT),
    "normal": static(
        lambda x: [
            *(torch.erfc(x), special.erfcx(x), special.ndtr(x), special.log_ndtr(x), special.ndtr(x.nan_to_num(0.0, 3.0).long())),
            *(special.erfcx(x * 1e10), special.log_ndtr(x * 100), aten_erfc(x)),
        ],
        REAL,
    ),
    "normal-double": static(lambda x: (torch.erfc(x), special.erfcx(x), special.ndtr(x), special.log_ndtr(x)), DOUBLES, tolerance=1e-12),
    "incomplete-gamma-double": static(
        lambda a, x: (torch.igamma(a.double(), x.double()), torch.igammac(a.double(), x.double())), AT, tolerance=1e-9
    ),
    "zeta-double": static(lambda x, q: (special.zeta(x.double() + 1.1, q.double() + 0.1),), AT, tolerance=1e-10),
    "normal-inverse-double": static(
        lambda x: (torch.erfinv(x), special.ndtri(x), special.erfcx(x * 30), special.log_ndtr(x * 30 - 15), torch.erfc(x * 9 - 2)),
        (torch.cat([torch.linspace(0.001, 0.999, 37, dtype=torch.float64), torch.tensor([1e-30, 1e-9, 1 - 1e-9], dtype=torch.float64)]),),
        tolerance=1e-12,
    ),
    "normal-inverse": dynamic(lambda x: (torch.erfinv(x), special.ndtri(x)), PROBABILITIES),
    "polynomials": static(
        lambda x, n: [
            *(special.chebyshev_polynomial_t(x, n), special.chebyshev_polynomial_u(x, n)),
            *(special.chebyshev_polynomial_v(x, n), special.chebyshev_polynomial_w(x, n)),
            *(special.shifted_chebyshev_polynomial_t(x, n), special.shifted_chebyshev_polynomial_u(x, n)),
            *(special.shifted_chebyshev_polynomial_v(x, n), special.shifted_chebyshev_polynomial_w(x, n)),
            *(special.hermite_polynomial_h(x, n), special.hermite_polynomial_he(x, n)),
            *(special.laguerre_polynomial_l(x, n), special.legendre_polynomial_p(x, n)),
        ],
        DEGREES,
        tolerance=1e-3,
    ),
    "polynomials-of-numbers": static(
        lambda x, n: [
            *(each(x, 4) for each in POLYNOMIALS),
            *(each(0.3, n) for each in POLYNOMIALS),
        ],
        DEGREES,
    ),
}


def aten_erfc(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.special_erfc(x)  # type: ignore[no-any-return]


POLYNOMIALS = [
    *(special.chebyshev_polynomial_t, special.chebyshev_polynomial_u, special.chebyshev_polynomial_v, special.chebyshev_polynomial_w),
    *(special.shifted_chebyshev_polynomial_t, special.shifted_chebyshev_polynomial_u),
    *(special.shifted_chebyshev_polynomial_v, special.shifted_chebyshev_polynomial_w),
    *(special.hermite_polynomial_h, special.hermite_polynomial_he, special.laguerre_polynomial_l, special.legendre_polynomial_p),
]
