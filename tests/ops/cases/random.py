"""Random numbers: facts about them that hold whatever they are."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from .case import Case, X, aten, dynamic, static

ONE_CLASS = torch.tensor([[0.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
SHARES = torch.tensor([0.25, 0.75, 0.0])
P = 0.4
DRAWS = frozenset({"OXP1015"})


def one_of(x: torch.Tensor, *allowed: torch.Tensor) -> torch.Tensor:
    """Whether each element is one of two values, and whether both occur."""
    found = torch.stack([torch.isclose(x, each, atol=1e-5) for each in allowed])
    return torch.stack([found.any(0).all(), *found.flatten(1).any(1)])


def alpha(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What alpha dropout makes of kept and of dropped elements: a x + b with mean 0 and variance 1 (Klambauer et al. 2017)."""
    limit = -1.7580993408473766
    scale = ((1 - P) * (1 + P * limit**2)) ** -0.5
    shift = -scale * P * limit
    return x * scale + shift, torch.full_like(x, limit * scale + shift)


def whole(x: torch.Tensor, dropped: torch.Tensor) -> torch.Tensor:
    """Whether each channel is dropped or kept as a whole."""
    is_dropped = torch.isclose(x, dropped, atol=1e-5)
    return is_dropped.all(-1) == is_dropped.any(-1)


def kept(x: torch.Tensor) -> torch.Tensor:
    """What attention to the first element alone gives where dropout keeps it."""
    return (x[:, :1].abs() + 1).expand_as(x) / (1 - P)


LAYERS = [
    kind(6, 4, num_layers=2, dropout=1.0, **options).to(dtype).train()
    for dtype in (torch.float32, torch.float64)
    for kind, options in (
        (torch.nn.LSTM, {}),
        (torch.nn.LSTM, {"proj_size": 2}),
        (torch.nn.GRU, {"bidirectional": True}),
        (torch.nn.RNN, {}),
    )
]
"""In training, everything between their layers is dropped."""


def is_spread(z: torch.Tensor, mean: float, deviation: float) -> torch.Tensor:
    """Whether both parts of many complex numbers have about this mean and this standard deviation."""
    parts = torch.view_as_real(z).reshape(-1, 2)
    return torch.stack([(parts.mean(0) - mean).abs() < 0.1, (parts.std(0) - deviation).abs() < 0.1])


def of_many(draw: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, mean: float, deviation: float) -> torch.Tensor:
    """Whether 6400 drawn numbers have about this mean and this standard deviation, in half precision as well."""
    found = [
        draw(x[0, 0, 0].to(dtype) * torch.zeros(80, 80, dtype=dtype) + 1).float() for dtype in (torch.float32, torch.float16, torch.float64)
    ]
    return torch.stack([torch.stack([(each.mean() - mean).abs() < 0.2, (each.std() - deviation).abs() < 0.2]) for each in found])


CASES: dict[str, Case] = {
    "normal": static(
        lambda x: (
            of_many(lambda y: torch.normal(y * 3, 2.0), x, 3.0, 2.0),
            of_many(lambda y: torch.normal(y * 3, y[0] * 2), x, 3.0, 2.0),
            of_many(lambda y: torch.normal(y[0] * 3, y * 2), x, 3.0, 2.0),
            of_many(lambda y: torch.normal(3.0, y * 2), x, 3.0, 2.0),
            of_many(lambda y: torch.empty_like(y).normal_(3.0, 2.0), x, 3.0, 2.0),
            of_many(torch.randn_like, x, 0.0, 1.0),
        ),
        X,
        expects=DRAWS,
    ),
    "uniform-of-a-size": static(
        lambda x: of_many(lambda y: torch.rand(80, 80, dtype=y.dtype) * 3 + y, x, 2.5, 3 / 12**0.5),
        X,
        expects=DRAWS,
    ),
    "bernoulli": static(
        lambda x: (
            torch.bernoulli(torch.full_like(x, 0.9).expand(200, -1, -1, -1)).mean() > 0.7,
            torch.bernoulli(torch.zeros_like(x)),
            torch.bernoulli(torch.ones_like(x)),
            torch.empty_like(x).bernoulli_(torch.ones(()).double()),
        ),
        X,
        expects=DRAWS,
    ),
    "permutation": static(lambda x: (torch.randperm(9).sort()[0], torch.randperm(4, dtype=torch.int32).sort()[0], x), X, expects=DRAWS),
    "random-integers": dynamic(
        lambda x: [
            *(drawn.eq(drawn.floor()).all() & (drawn >= 2).all() & (drawn < 4).all() for drawn in (torch.zeros_like(x).random_(2, 4),)),
            *((drawn >= 0).all() & (drawn < 5).all() for drawn in (torch.zeros_like(x).random_(5), x.int().random_(5))),
            x.int().random_() >= 0,
            x.double().random_().frac() == 0,
            *(torch.zeros(4096, dtype=dtype).random_().max() > 2**bits for dtype, bits in ((torch.float32, 22), (torch.float64, 51))),
        ],
        X,
        expects=DRAWS,
    ),
    "slopes-of-negative-elements": dynamic(
        lambda x: (
            functional.rrelu(x.abs(), training=True),
            (functional.rrelu(-x.abs() - 1, 0.2, 0.4, training=True) / (x.abs() + 1) + 0.3).abs() <= 0.1001,
            *(functional.rrelu(x), functional.rrelu(x, 0.1, 0.4)),
        ),
        X,
        expects=DRAWS,
    ),
    "dropout": dynamic(
        lambda x: (
            one_of(dropped := functional.dropout(x, P, training=True), x / (1 - P), x * 0),
            whole(dropped, x * 0).all(),
            # NOTE: ONNX Runtime treats a model's inputs and other values differently.
            one_of(functional.dropout(x.exp(), P, training=True), x.exp() / (1 - P), x * 0),
        ),
        X,
        expects=DRAWS,
    ),
    "dropout-in-attention": dynamic(
        # NOTE: of one key, so that a weight is 1 until it is dropped.
        lambda x: (
            one_of(dropped := functional.scaled_dot_product_attention(x, x[:, :1], x[:, :1].abs() + 1, dropout_p=P), kept(x), x * 0),
            whole(dropped, x * 0),
            functional.scaled_dot_product_attention(x, x, x, dropout_p=1.0),
        ),
        X,
        expects=DRAWS,
    ),
    "dropout-between-layers": static(
        lambda x: [result for layer in LAYERS for result in torch.utils._pytree.tree_leaves(layer(x.to(layer.weight_ih_l0.dtype)))],
        X,
        expects=DRAWS,
    ),
    "dropout-of-channels": dynamic(
        lambda x: (
            one_of(dropped := functional.dropout1d(x, P, training=True), x / (1 - P), x * 0),
            whole(dropped, x * 0),
        ),
        X,
        expects=DRAWS,
    ),
    "alpha-dropout": dynamic(
        lambda x: (
            one_of(dropped := functional.alpha_dropout(x, P, training=True), *alpha(x)),
            whole(dropped, alpha(x)[1]).all(),
        ),
        X,
        expects=DRAWS,
    ),
    "alpha-dropout-of-channels": dynamic(
        lambda x: (
            one_of(dropped := functional.feature_alpha_dropout(x, P, training=True), *alpha(x)),
            whole(dropped, alpha(x)[1]),
        ),
        X,
        expects=DRAWS,
    ),
    "everything-is-dropped": static(
        lambda x: [
            each(x, 1.0, training=True)
            for each in (functional.dropout, functional.dropout1d, functional.alpha_dropout, functional.feature_alpha_dropout)
        ],
        X,
        expects=DRAWS,
    ),
    "nothing-is-dropped": static(
        lambda x: (
            [
                each(x, p, training=training) * 2
                for each in (functional.dropout, functional.dropout1d, functional.alpha_dropout, functional.feature_alpha_dropout)
                for p, training in ((0.0, True), (0.5, False))
            ]
            + [each(x, 0.5, False) * 2 for each in (aten.dropout, aten.feature_dropout, aten.alpha_dropout, aten.feature_alpha_dropout)]
        ),
        X,
    ),
    "multinomial": static(
        lambda x: (x.multinomial(1), x[0].multinomial(1), x.multinomial(4, replacement=True), x[1].multinomial(3, True)),
        (ONE_CLASS,),
        expects=DRAWS,
    ),
    "without-replacement": static(
        lambda x: (x.abs().multinomial(6).sort(-1)[0], x[0].abs().multinomial(6).sort()[0]), (X[0][0] + 1,), expects=DRAWS
    ),
    "shares-without-replacement": static(
        lambda x: [
            ((x * 0 + SHARES).multinomial(2)[:, 0] == each).float().mean().sub(share).abs() < 0.05 for each, share in enumerate(SHARES)
        ],
        (torch.ones(3000, 3),),
        expects=DRAWS,
    ),
    "uniform": static(lambda x: ((drawn := aten.uniform(x, 2.0, 3.0)) >= 2, drawn <= 3, (aten.uniform(x.half()) <= 1)), X, expects=DRAWS),
    "like": static(
        lambda x: [
            *((uniform := torch.rand_like(x)) >= 0, uniform < 1, torch.rand_like(x.half()) <= 1, torch.randn_like(x.half()).abs() < 9),
            *(torch.randn_like(x).abs() < 9, torch.randn(3, 4, dtype=torch.float16).abs() < 9, torch.randn(5).abs() < 9),
        ],
        X,
        expects=DRAWS,
    ),
    "complex-normal": static(
        lambda x: [
            is_spread(torch.randn(4000, 2, dtype=torch.complex64), 0.0, 0.5**0.5),
            is_spread(torch.randn_like(x.repeat(60, 1, 1), dtype=torch.complex64), 0.0, 0.5**0.5),
            is_spread(torch.zeros(4000, 2, dtype=torch.complex64).normal_(), 0.0, 0.5**0.5),
            is_spread(torch.zeros(4000, 2, dtype=torch.complex64).normal_(2.0, 0.5), 2.0, 0.5**1.5),
        ],
        X,
        expects=DRAWS,
    ),
}
