"""Casts, copies and sparse tensors."""

from __future__ import annotations

import torch

from .case import MIXED, PAIR, Case, X, aten, dynamic, randn, static

prims = torch.ops.prims
NARROW = (torch.int8, torch.uint8, torch.int16, torch.int32)

CASES: dict[str, Case] = {
    "to": dynamic(
        lambda a, b: [
            *(a.to(torch.int32), a.type_as(b), b.to(a), a.to("cpu", torch.float16), a.to(dtype=torch.float64), b.bool(), a.long()),
            *(aten._to_copy(a, dtype=torch.int64), prims.convert_element_type(b, torch.float32)),
            aten.to.dtype_layout(a, dtype=torch.int64),
            *(aten.to.device(b, "cpu", torch.float32), aten.to.other(a, b), aten.to.other(b, a)),
        ],
        MIXED,
    ),
    "copies": dynamic(
        lambda a, b: [
            *(a.detach() + 1, a.clone() + 2, a.contiguous() + 3, aten.alias(a) + 4, aten.detach_copy(a) + 5, aten.lift_fresh_copy(a) + 6),
            *(aten.copy(a, b), aten.copy(a, b[:1]), aten.copy(a, a[:1])),
            *(a.positive() + 7, a.resolve_conj() + 8, a.resolve_neg() + 9, aten._neg_view(a) + 10, aten._neg_view_copy(a) + 11),
        ],
        MIXED,
    ),
    "fresh": dynamic(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]), PAIR[:1]),
    "lifted": static(lambda x: x + aten.alias(x * 2), PAIR[:1], replaced={aten.alias.default: aten.lift_fresh.default}),
    "coalesced": static(
        lambda x: x.to_sparse().coalesce().to_dense() + 1, (randn(3, 4).relu(),), replaced={aten.coalesce.default: aten._coalesce.default}
    ),
    "sparse": static(
        lambda x: [
            *((x.to_sparse() * 2).to_dense() + 1, x.to_sparse_csr().to_dense() + 2, x.to_sparse().coalesce().to_dense() + 3),
            *(aten._to_sparse(x).to_dense() + 4, aten._to_sparse_csr(x).to_dense() + 5, aten._to_dense(x.to_sparse())),
            x.double().to_sparse().to_dense() * 2,
        ],
        (randn(3, 4).relu(),),
    ),
    "fill": dynamic(lambda x: torch.zeros_like(x).fill_(3.0) + x, X),
    "bytes-of-whole-numbers": dynamic(
        lambda x: [
            *(y.view(dtype) for y in (x.repeat(1, 8).to(each) for each in NARROW) for dtype in (*NARROW, torch.int64)),
            *(x.view(dtype) for dtype in (torch.int64, *NARROW)),
            *((x > 0).view(torch.uint8), (x > 0).to(torch.uint8).view(torch.bool), (x * 1.5).view(torch.float32) * 0),
        ],
        (torch.arange(-6, 6).reshape(3, 4) * (2**58 + 2**33 + 12345),),
        tolerance=0,
    ),
}
