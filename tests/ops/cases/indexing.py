"""Picking elements by positions and masks, and scattering them."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from .case import INTS, Case, X, aten, dynamic, randn, static

ROWS, PAIRS = torch.tensor([1, 0]), torch.tensor([[0, 1], [2, -1]])
put = aten.index_put.default
POSITIONS = torch.tensor([[0, 2], [1, 1]])


def scattered(x: torch.Tensor, reduce: str, include_self: bool) -> torch.Tensor:
    index = torch.tensor([[0, 2, 0], [1, 1, 0]]).reshape(2, 3, *[1] * (x.ndim - 2))
    return x.scatter_reduce(0, index, x[1:3] * 2, reduce, include_self=include_self)


def diagonal_writes(x: torch.Tensor) -> list[torch.Tensor]:
    filled, copied, added = x.clone(), (9 * x).to(torch.int8), x.clone()
    filled.diagonal(-1, 2, 1).fill_(7)
    copied.diagonal().copy_(x[0, 0, 0])
    added[0].diagonal(1).add_(x[0].diagonal(1))
    return [filled, copied, added]


def slice_writes(x: torch.Tensor) -> list[torch.Tensor]:
    written = [x.clone() for _ in range(8)]
    written[0][1] = 7
    written[1][:, -1] = x[:, 0]
    written[2][1:] += 1
    written[3][:, :-1].mul_(2)
    written[4][..., ::2] = 5
    written[5][-1:, :0] = 3
    written[6][:] = x[0]
    written[7][1:-1, ..., 0].zero_()
    return written


def slice_added(x: torch.Tensor) -> torch.Tensor:
    written = x.clone()
    written[:, 1:9:2, 1:-1] += x[:, 1:9:2, 1:-1]
    return written


CASES: dict[str, Case] = {
    "filled-diagonals": dynamic(lambda x: (x @ x.t()).fill_diagonal_(2.0), (randn(3, 4),)),
    "diagonals-beside-infinity": dynamic(
        lambda x: [
            *(
                x.diag(),
                torch.diag(x[0]),
                x.diagonal_scatter(x.diag() + 1),
                torch.diagonal_copy(x, 1),
                torch.diag_embed(x),
                torch.diagflat(x),
            ),
            *(x.tril(), x.triu(1), x.trace()),
        ],
        (torch.tensor([[1.0, math.inf, -math.inf], [math.inf, 2.0, 5.0], [-math.inf, math.nan, 3.0]]),),
    ),
    "place-of-a-number": static(
        lambda x: [
            torch.searchsorted(each, number, right=right)
            for x in [x.sort()[0]]
            for each, number, right in ((x, 0.5, False), (x, 1, True), ((9 * x).int(), 3, False))
        ],
        (torch.tensor([0.1, 0.5, 0.5, 1.0]),),
    ),
    "embedding": dynamic(
        lambda w, i: (functional.embedding(i, w), functional.embedding(i, w, padding_idx=1), aten.embedding(w, i[0])),
        (randn(9, 4), torch.tensor([[0, 8, 3], [1, 1, 2]])),
    ),
    "embedding-bag": dynamic(
        lambda w, i, p: [
            *(functional.embedding_bag(i, w, torch.tensor([0, 2, 2, 5]), mode=mode) for mode in ("sum", "mean", "max")),
            *(functional.embedding_bag(i, w, torch.tensor([0, 1]), mode=mode, padding_idx=1) for mode in ("sum", "mean", "max")),
            functional.embedding_bag(i, w, torch.tensor([0, 2]), mode="sum", per_sample_weights=p),
            functional.embedding_bag(i, w, torch.tensor([0, 2, 6], dtype=torch.int32), mode="mean", include_last_offset=True)[:1],
            functional.embedding_bag(torch.stack([i, i]), w, mode="max"),
            aten._embedding_bag(w, i, torch.tensor([0, 2]))[0],
            aten._embedding_bag_forward_only(w, i, torch.tensor([0, 2]), False, 1)[0],
            aten.embedding_bag(w, i, torch.tensor([0, 3]))[0],
            *(aten.embedding_bag.padding_idx(w, i, torch.tensor([0, 3]), False, 2, False, None, False, n)[0] for n in (0, 1, 8, -1, -9)),
        ],
        (randn(9, 4), torch.tensor([0, 8, 3, 1, 1, 2]), randn(6)),
    ),
    "embedding-bag-static": static(
        lambda w, i: [
            *(functional.embedding_bag(i, w, torch.tensor([0, 2, 2]), mode=mode) for mode in ("sum", "mean", "max")),
            *(functional.embedding_bag(i, w, torch.tensor([0, 1]), mode=mode, padding_idx=-8) for mode in ("sum", "mean", "max")),
            aten._embedding_bag(w, i, torch.tensor([0, 2, 2]), False, 1)[2],
        ],
        (randn(9, 4), torch.tensor([0, 8, 3, 1, 1, 2])),
    ),
    "index": dynamic(
        lambda x: [
            *(x[:, torch.tensor([1, -1, 0])], x[POSITIONS], x[..., torch.tensor(2)], x[torch.tensor([0, 2]), :, torch.tensor([1, 3])]),
            *(x[torch.tensor([0, 2]), torch.tensor([1, 3])], x[:, torch.tensor([1, 3]), POSITIONS], x[POSITIONS, :, POSITIONS[0]]),
            aten._unsafe_index.Tensor(x, [None, POSITIONS, torch.tensor([1, 0])]),
            x[None][:, torch.tensor([0, 2]), torch.tensor([1, 3])],
        ],
        X,
    ),
    "index-writes": dynamic(
        lambda x: [
            *(put(x, [ROWS], x[:2] * 2), put(x, [None, ROWS], x[:, ROWS] + 1), put(x, [None, None, ROWS], x[0, :1, :2])),
            *(put(x, [ROWS, None, PAIRS], x[ROWS, :, PAIRS] * 3), put(x, [ROWS, PAIRS], x[0, 0]), put(x, [ROWS, ROWS, ROWS], x[0, 0, 0])),
            *(put(x, [None, PAIRS, PAIRS[:, :1]], x[:, PAIRS, PAIRS[:, :1]]), put(x, [PAIRS, None, ROWS[:1]], -x[0, :1, 0])),
            *(put(x, [ROWS - 2, ROWS], x.sum(), True), put(x, [None, ROWS[:1] * 0], x[:, :1], True)),
            aten._unsafe_index_put(x, [None, ROWS, PAIRS], x[:1, 0, :2]),
        ],
        X,
    ),
    "mask-writes": dynamic(
        lambda x: [
            *(put(x, [x > 0], x.new_tensor(9.0)), put(x, [x > 0], 2 * x[x > 0]), put(x, [x > 0], x[0, 0, :1], True)),
            *(put(x, [x[:, 0, 0] > 0], x[0]), put(x, [x[..., 0] > 0], x[0, :1]), put((9 * x).int(), [None, x[0] > 0], x[0, 0, :1].int())),
            *(put(x, [None, x[0] > 0], 3 * x[:, x[0] > 0]), put(x, [None, x[0, :, 0] > 0], x[:1, :1])),
            *(put(x, [None, None, x[0, 0] > 0], x[:, :, :1]), put(x, [x[:, 0, 0] > 9, x[0, :, 0] > 9], x[0, 0])),
            *(put(x, [ROWS[:1], None, x[0, 0] > 0], x.sum()), put(x, [ROWS[1:], x[0, :, 0] > 0], x[0, :1] * 2)),
            *(put(x, [x[:, 0, 0] > 0, ROWS[:1]], x[0, 0], True), put(x, [(x[:, 0, 0] > 0).byte()], x[:1])),
        ],
        X,
    ),
    "index-by-inputs": dynamic(lambda x, i: (x[i, i], x[:, i, i[:1]], x[i, :, i]), (randn(4, 4, 4), torch.tensor([0, 3, 1]))),
    "index-by-bools": static(lambda x: x[:, torch.tensor([True, False] * 4)], X),
    "masks": dynamic(lambda x: (x[x > 0], x.masked_select(x > 0), x[x[:, 0, 0].abs() > 0.1], x.masked_select(x[:1, :1] > 0)), X),
    "masks-beside-dims": dynamic(
        lambda x: (x[:, x[0, :, 0] > 0], x[..., x[0, 0] > 0], x[x[..., 0] > 0], x[:, x[0] > 0], x[x > 9], x[x[:, 0, 0] > 9, 1]), X
    ),
    "constant-mask": static(lambda x: x[:, torch.tensor([True, False, True])], (randn(2, 3),)),
    "mask-of-one": static(lambda x: torch.masked_select(x[0, 0], x[:1, :1, 0] > -9), X),
    "diagonals": dynamic(
        lambda x: [each.diagonal(*where) for each in (x, x > 0, (9 * x).to(torch.int8)) for where in ((), (1,), (-2, 1, 2), (2, -1, 0))], X
    ),
    "diagonal-writes": dynamic(diagonal_writes, X),
    "slice-writes": dynamic(slice_writes, X),
    "slice-writes-static": static(slice_writes, X),
    "slice-added": dynamic(slice_added, X, since="2.12"),
    "slice-scatters": dynamic(
        lambda x: [
            aten.slice_scatter(x, x[:0] * 2, 0, 2, 1),
            aten.slice_scatter(x > 0, x[1:2] > 1, 0, -1),
            aten.select_scatter((9 * x).to(torch.int8), (3 * x[0]).to(torch.int8), 0, -1),
        ],
        X,
    ),
    "searchsorted": dynamic(
        lambda s, v: (torch.searchsorted(s.sort()[0], v), torch.searchsorted(s.sort()[0], v, right=True, out_int32=True)),
        (randn(5), randn(2, 3)),
    ),
    "searchsorted-dtypes": dynamic(
        lambda s, v: (torch.searchsorted(s.sort()[0], v.double()), torch.searchsorted(s.double().sort()[0], v)), (randn(5), randn(2, 3))
    ),
    "searchsorted-rows": dynamic(
        lambda s, v: (torch.searchsorted(s.sort()[0], v, side="right"), torch.searchsorted(s, v, sorter=s.argsort())),
        (torch.arange(8.0).reshape(2, 4), torch.arange(6.0).reshape(2, 3)),
    ),
    "bucketize": dynamic(
        lambda x: (
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
            torch.bucketize(x.round(), torch.arange(-2.0, 3.0), right=True, out_int32=True),
        ),
        X,
    ),
    "scatter-reduce": static(
        lambda x: [scattered(x, name, own) for name in ("sum", "mean", "prod", "amax", "amin") for own in (True, False)], X
    ),
    "scatter-reduce-scalar": static(lambda x: x[0, 0, 0].scatter_reduce(0, torch.tensor(0), x[1, 1, 1], "mean"), X),
    "scatter-reduce-ints": static(lambda a, b: scattered(a, "amax", False) + scattered(a, "amin", False) + b, INTS),
    "nonzero": dynamic(
        lambda x: ((x > 0).nonzero(), x.round().nonzero(), aten.nonzero_static(x > 1, size=9), aten.nonzero_static(x, size=3)), X
    ),
    "nonzero-of-scalar": static(lambda x: ((x.sum() > 99).nonzero(), x[0, 0, 0].nonzero()), X),
    "take": static(
        lambda x, i: (x.take(i), x.take(-i[0, 0] - 1), x.sum().take(i[0] * 0), (x > 0).take(i)),
        (randn(3, 4), torch.tensor([[0, 2], [1, 0]])),
    ),
    "gather": static(
        lambda x, i: [
            *(x.gather(0, i), x.gather(-1, i), x[0].gather(0, i[0, 0]), x[0].gather(0, i[0])),
            *(x.sum().gather(0, each) for each in (i[0, 0] * 0, i[0] * 0)),
        ],
        (randn(3, 4), torch.tensor([[0, 2], [1, 1]])),
    ),
    "place-of-a-number-in-halves": static(
        lambda x: (torch.searchsorted(x.half().sort()[0], 0.4), torch.bucketize(0.4, x.half().sort()[0], right=True)), (randn(9),)
    ),
}
