"""Diagonals, and elements put to positions."""

from __future__ import annotations

import torch

from .case import INTS, Case, X, aten, dynamic, randn, static

ROWS = torch.tensor([2, 0, 2])
PLACES = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
MATRIX = (randn(3, 4),)

EXTREMA = ("amax", "amin", "prod")

CASES: dict[str, Case] = {
    "counts": dynamic(
        lambda x: [
            *(torch.bincount(x.argmax(1)[:, 0], minlength=x.size(1)), torch.bincount(x[:0, 0, 0].long(), minlength=3)),
            *(torch.bincount(x.argmax(1)[:, 0], weights) for weights in (x[:, 0, 0], x[:, 0, 0].double(), x[:, 0, 0].int())),
            torch.bincount(torch.tensor([1, 5, 1], dtype=torch.uint8)),
        ],
        X,
    ),
    "histograms": dynamic(
        lambda x: [
            *(x.histc(), x.histc(5), x.histc(7, -1, 0.5), x.double().histc(4, min=2, max=2), (0 * x).histc(3)),
            *(torch.cat([x, x + torch.nan]).histc(4, -2, 2), torch.histc(x[0, :0], 3), torch.histc(x.round().half(), 8, -4, 4)),
        ],
        X,
    ),
    "diagonal": dynamic(lambda x: (x.diagonal(), x.diagonal(1, -1, 0), x.diagonal(-2, 1, 2), x.diagonal(9, 0, 1).sum(), x[0].trace()), X),
    "diagonal-of-nothing-scatter": dynamic(lambda x: torch.diagonal_scatter(x[0, :, x.shape[2] :], x[0, 0, x.shape[2] :]), X),
    "diagonal-scatter": dynamic(
        lambda x: (x.diagonal_scatter(x.diagonal() * 2), x.diagonal_scatter(x.diagonal(-2, 2, 1) * 2, -2, 2, 1)), X
    ),
    "other-dtypes": static(
        lambda x: (x.diagonal_scatter(x.diagonal().round().int()), x.as_strided_scatter(x[:2, :2].double(), (2, 2), (4, 2), 1)), MATRIX
    ),
    "sums-of-slices": dynamic(
        lambda x: [
            *(x.index_add(1, ROWS, 2 * x[:, ROWS], alpha=3), x.index_add(-1, ROWS.int(), x[..., ROWS]), x.index_add(0, ROWS[1:2], x[:1])),
            *((x > 0).index_add(1, ROWS, x[:, ROWS] > 1), x.round().half().index_add(1, ROWS, x[:, ROWS].round().half(), alpha=0.5)),
            *(x.sum().index_add(0, ROWS[1], x.mean()), x.int().index_add(1, ROWS[:1], x[:, ROWS[1:2]].int(), alpha=2)),
        ],
        X,
    ),
    "put": static(
        lambda x: [
            *(x.put(torch.tensor([1, -1, 3]), torch.ones(3)), x.put(torch.tensor([[1, 1]]), torch.ones(1, 2), accumulate=True)),
            x.put(PLACES[0][:2], x[0, :2] * 3),
        ],
        MATRIX,
    ),
    "scatter-with": static(
        lambda x: [
            *(x.scatter(0, PLACES, x[:2] * 2, reduce="add"), x.scatter(0, PLACES, x[:2] * 2, reduce="multiply")),
            x.scatter(0, PLACES[:, :2], 3.0, reduce="add"),
        ],
        MATRIX,
        tolerance=1e-3,
    ),
    "scatter-scalars": static(
        lambda x: [
            each(x[0, 0], 0, torch.tensor(0), x[1, 1] * 2)
            for each in (torch.scatter, torch.scatter_add, lambda *args: torch.scatter_reduce(*args, "amax"))
        ],
        MATRIX,
    ),
    "index-reduce": static(
        lambda x: [
            *(x.index_reduce(0, ROWS, x * 2, name, include_self=own) for name in ("prod", "mean", "amax", "amin") for own in (True, False)),
            x.sum().index_reduce(0, torch.tensor([0]), x[0, 0], "prod"),
        ],
        MATRIX,
    ),
    "index-reduce-ints": static(lambda a, b: a.index_reduce(0, ROWS, a * 3 + b, "mean"), INTS),
    "resize": static(lambda x: (aten.resize(x, [2, 5]), aten.resize(x, [7]), aten.resize(x, []), aten.resize_as(x, x[:2, :3])), MATRIX),
    "resize-to-dynamic": dynamic(lambda x: aten.resize(x, [2, x.size(1)]), MATRIX),
    "low-precision": static(
        lambda x: [
            torch.zeros(3, 4, dtype=torch.float16).scatter_add(0, PLACES, x.half()),
            *((x > 0).scatter_reduce(0, PLACES, x[:2] > 1, each, include_self=own) for each in EXTREMA for own in (True, False)),
            torch.where(x > 0, x > 1, x < -1),
        ],
        MATRIX,
        tolerance=1e-2,
    ),
    "masked-index": static(
        lambda x: [
            aten._unsafe_masked_index(x, x[:, 0] > 0, [torch.tensor([0, 1, 2]), torch.tensor([3, 1, 0])], 7.0),
            aten._unsafe_masked_index_put_accumulate(x, x[:, 0] > 0, [torch.tensor([0, 1, 1]), torch.tensor([3, 1, 1])], x[:, 1] * 2),
        ],
        MATRIX,
    ),
    "as-strided-scatter": static(lambda x: x.as_strided_scatter(x[:2, :2] * 2, (2, 2), (4, 2), 1), MATRIX),
}
