"""Sums, means, softmax; running sums, products and extrema; order statistics."""

from __future__ import annotations

import math

import torch

from .case import INTS, Case, X, aten, dynamic, randn, static

QUANTILES = torch.tensor([0.13, 0.88])

SEGMENTS = torch.tensor([2, 0, 4])

CASES: dict[str, Case] = {
    "variances": dynamic(
        lambda x: [
            *(
                x.var(-1, keepdim=True),
                x.var((0, 1), correction=2, keepdim=True),
                x.var(unbiased=False),
                torch.var(x, dim=1, correction=1.5),
            ),
            *(
                x.std((1, 2), keepdim=True),
                torch.std(x, correction=0),
                x[0, 0, 0].std(correction=0),
                x.half().var(0).float().round(decimals=1),
            ),
            *(*torch.var_mean(x, 1), *torch.var_mean(x, (0, -1), correction=0, keepdim=True)),
            *(*torch.std_mean(x, keepdim=True), *torch.std_mean(x.double(), 0, correction=x.shape[0] - 1)),
        ],
        X,
    ),
    "variances-of-too-few": static(lambda x: (x[:1].var(0), x[:2].std(0, correction=3), x[:2].var(0, correction=2)), X),
    "segments": static(
        lambda x: [
            *(torch.segment_reduce(x, each, lengths=SEGMENTS) for each in ("sum", "mean", "max", "min", "prod")),
            *(torch.segment_reduce(x, each, lengths=SEGMENTS, initial=0.5) for each in ("sum", "mean", "max")),
        ],
        (randn(6, 2),),
    ),
    "segments-by-their-ends": static(
        lambda x: (
            torch.segment_reduce(x, "sum", offsets=torch.tensor([0, 2, 2, 6])),
            torch.segment_reduce(x, "mean", offsets=torch.tensor([1, 3, 3, 5]), unsafe=True),
            torch.segment_reduce(x.T, "max", lengths=torch.tensor([[2, 4], [5, 1]]), axis=1),
        ),
        (randn(6, 2),),
    ),
    "sums": dynamic(
        lambda x: [
            *(x.sum(), x.sum(1), x.sum((0, -1), keepdim=True), x.sum(-1, dtype=torch.float64), x.sum(dim=[]), x.sum().sum()),
            x.sum().sum(0),
            *(x.mean(), x.mean(1), x.mean((0, -1), keepdim=True), x.mean(-1, dtype=torch.float64), x.mean(dim=[]), x.sum().mean()),
        ],
        X,
    ),
    "sums-of-ints": dynamic(
        lambda a, b: (a.sum(), a.sum(1, dtype=torch.int32), b.sum(0), a.float().mean(), a.mean(dtype=torch.float32)), INTS
    ),
    "extrema-with-positions": dynamic(
        lambda x: [
            *(*x.min(0), *x.max(1), *(x > 0).min(2), *(x > 0).max(-1, keepdim=True), *(9 * x).int().min(0), *x.sum().max(0)),
            *x.sum().min(0, keepdim=True),
        ],
        X,
    ),
    "softmax": dynamic(
        lambda x: [
            *(x.softmax(-1), x.log_softmax(1), torch.special.softmax(x, 0), torch.special.log_softmax(x, -1)),
            x.softmax(1, dtype=torch.float64),
            *(core(each, 1, False) for core in (aten._softmax, aten._log_softmax) for each in (x, x.double())),
            *(x.sum().softmax(0), x.sum().log_softmax(-1)),
        ],
        X,
    ),
    "cumsum": dynamic(lambda x: (x.cumsum(1), x.cumsum(-1, dtype=torch.float64), x.sum().cumsum(0) + 1), X),
    "cumprod": dynamic(lambda x: (x.cumprod(1), x.cumprod(0), x[0, 0].cumprod(0), x.sum().cumprod(0) + 1), X),
    "cumprod-vector": dynamic(lambda x: x.cumprod(-1, dtype=torch.float64), (torch.tensor([2, 0, -3]),)),
    "cummax": dynamic(
        lambda x: (*x.cummax(1), *x.cummin(-1), *x.round().cummax(0), *x.round().int().cummin(1), *(x > 0).cummax(1)), X, runtime="1.24"
    ),
    "cummax-of-nan": dynamic(
        lambda x: [each.nan_to_num(99.0) for result in (x.cummax(0), x.cummin(0)) for each in result],
        (torch.tensor([1.0, math.nan, 2.0, math.nan, 3.0]),),
    ),
    "cummax-of-scalar": static(lambda x: (*x.sum().cummax(0), *x.sum().cummin(0)), X),
    "logcumsumexp": dynamic(
        lambda x: (
            x.logcumsumexp(1),
            x.logcumsumexp(-1),
            (x * 0).logcumsumexp(1),
            (x * 0 - math.inf).logcumsumexp(0),
            x.sum().logcumsumexp(0) + 1,
        ),
        X,
    ),
    "quantile": dynamic(
        lambda x: [
            *(x.quantile(0.3), x.quantile(0.5, dim=-1, keepdim=True), x.quantile(0.3, keepdim=True), x.sum().quantile(0.5)),
            *(x.quantile(QUANTILES, dim=dim, keepdim=keep) for dim in (None, 0, 1) for keep in (False, True)),
            *(x.quantile(QUANTILES, 1, interpolation=each) for each in ("lower", "higher", "nearest", "midpoint")),
            *(x.quantile(0.34, 1, interpolation=each) for each in ("lower", "higher", "nearest", "midpoint")),
            torch.where(x > 1, torch.nan, x).quantile(0.2, dim=1).isnan(),
        ],
        X,
        since="2.12",
    ),
    "unique": dynamic(
        lambda x: [
            *torch.unique(x, return_inverse=True, return_counts=True),
            # NOTE: PyTorch gives several NaN no fixed order.
            *torch.unique(torch.where(x >= x.max(), torch.nan, x.round()), return_inverse=True, return_counts=True),
            *torch.where(x > 1, torch.nan, x.round()).unique(return_counts=True),
            (x * torch.nan).unique(return_inverse=True)[1].sum(),
            *torch.unique(x.round().int(), return_inverse=True),
            *((x > 0).unique(), x[:, :0].unique()),
        ],
        X,
        # NOTE: torch 2.11 captures the counts with another dtype.
        since="2.12",
    ),
    "unique-consecutive": dynamic(
        lambda x: [
            *torch.unique_consecutive(x.round(), return_inverse=True, return_counts=True),
            *torch.unique_consecutive(x.round().clamp(-1, 0).to(torch.int8), return_counts=True),
            *torch.unique_consecutive(torch.cat([x[:1], x]), return_inverse=True, return_counts=True, dim=0),
            *torch.unique_consecutive(torch.cat([x, x[..., -1:]], -1), return_inverse=True, dim=2),
            *torch.unique_consecutive(torch.cat([x, x[..., -1:]], -1), return_counts=True, dim=-1),
            *((x > 0).unique_consecutive(), (x * torch.nan).unique_consecutive(), x.sum().unique_consecutive()),
            x[:0].unique_consecutive(),
        ],
        X,
        since="2.12",
    ),
    "topk": dynamic(lambda x: [*x.topk(2), *x.topk(1, 0, largest=False), *x.sum().topk(1), *x.flatten().int().topk(x.shape[0] - 1)[:1]], X),
    "median": dynamic(
        lambda x: [
            *(x.median(), *x.median(1), *x.median(-1, keepdim=True), *x.sum().median(0), x.round().int().median(), *x.long().median(1)),
            *(torch.where(x > 1, torch.nan, x).median(1)[0].isnan(), torch.where(x > 1, torch.nan, x).median(1)[1]),
        ],
        X,
    ),
    "stable sorts of equal elements": dynamic(
        lambda x: (
            *x.round().sort(stable=True),
            *x.round().sort(dim=0, descending=True, stable=True),
            x.round().argsort(stable=True),
            *x.sum().sort(stable=True),
        ),
        X,
    ),
    "order with NaN and infinity": dynamic(
        lambda x: [
            *(*x.log().sort(stable=True), *(x / x.relu()).sort(dim=1, descending=True, stable=True), (1 / x.relu()).sort()[0]),
            *(*x.log().kthvalue(2), x.log().kthvalue(29)[0]),
            torch.searchsorted(x[0, 0].sort()[0], x[0].log()),
            torch.searchsorted(x[0, 0].sort()[0], x[0].log(), right=True),
        ],
        (randn(3, 4, 30),),
    ),
    "quantile with NaN and infinity": dynamic(lambda x: x.log().nanquantile(0.3, dim=1), (randn(3, 4, 30),), since="2.12"),
    "kthvalue": dynamic(lambda x: (*x.kthvalue(2), *x.kthvalue(3, 0, True), *x.sum().kthvalue(1), *x.kthvalue(x.size(1) // 2, 1)), X),
    "extrema": dynamic(lambda x: (x.amax(), *x.aminmax(dim=1), *torch.std_mean(x)), X),
    "singles": static(lambda x: (x.softmax(0), x.cumsum(0), x.median()), (randn(1),)),
    "median-of-a-vector": dynamic(lambda x: (x.median(), x.nanmedian()), (randn(5),)),
    "median-of-none": dynamic(
        lambda x: [
            each.nan_to_num(99.0)
            for y in (x, x.clamp(max=1), torch.where(x > 0.5, torch.nan, x))
            for each in (y[x > 1].median(), y[x > 1].nanmedian(), y[x < 1].median(), y[x < 1].nanmedian())
        ],
        (torch.linspace(-1, 0.9, 12).reshape(3, 4),),
    ),
    "nanmedian": dynamic(
        lambda x: [
            result
            for each in (x, torch.where(x > 0.3, torch.nan, x), x.round().int())
            for result in (*each.nanmedian(1)[:1], *each.nanmedian(-1, keepdim=True)[:1], each.nanmedian())
        ],
        X,
    ),
    "logsumexp-of-ints": static(lambda a, b: (a.logsumexp(1), b.logsumexp((0, 1)), (a > 0).logsumexp(0)), INTS),
    "mode": dynamic(
        lambda x: [each for v in (x.round(), x.round().int(), x > 0) for each in (*v.mode(1), *v.mode(keepdim=True), *v[0, 0, 0].mode(0))],
        X,
    ),
    "vector-norms": dynamic(
        lambda x: [
            torch.linalg.vector_norm(each, order, dim, keepdim, dtype=torch.float64 if order == 3 else None)
            for each in (x, x.sum())
            for order in (2, 1, 0, 3, 0.5, -1, math.inf, -math.inf)
            for dim, keepdim in ((None, False), (None, True), (-1, True))
        ],
        X,
    ),
    "variances-that-keep-all-dims": dynamic(
        lambda x: [
            *(torch.var(x, correction=each, keepdim=True) for each in (0, 0.5)),
            *(torch.std(x, correction=0, keepdim=True), *torch.var_mean(x, correction=1, keepdim=True)),
        ],
        X,
    ),
    "places-in-all-dims": dynamic(
        lambda x: [
            place
            for each in (x, x.sum(), (9 * x).int())
            for place in (
                each.argmax(),
                each.argmin(keepdim=True),
                each.argmax(keepdim=True),
                each.argmin(-1),
                each.argmax(0, keepdim=True),
            )
        ],
        X,
    ),
    "spread-of-scalars": static(
        lambda x: [
            spread.nan_to_num(7)
            for each in (x.sum(), x.sum().double())
            for spread in (each.var(), each.std(0), each.var((), keepdim=True), each.std(correction=0), each.var(0, correction=2))
        ],
        X,
    ),
    "no-dims-of-a-scalar": static(
        lambda x: [
            torch.logsumexp(x.sum(), ()),
            *(reduce(x.sum(), dim=()) for reduce in (torch.amax, torch.sum, torch.mean, torch.masked.logsumexp, torch.count_nonzero)),
        ],
        X,
    ),
    "native-layer-norm": static(
        lambda x: [
            result
            for each in (x, x.double(), x.half())
            for weight in (None, each[0, 0])
            for result in torch.native_layer_norm(each, [6], weight, weight, 1e-5)
        ],
        X,
        tolerance=1e-2,
    ),
}
