"""Matrix products, distances, convolutions, recurrent cells."""

from __future__ import annotations

import itertools
import math

import torch
from torch import nn
from torch.nn import functional

from .case import IMAGE, INTS, PAIR, Case, X, aten, dynamic, layer, randn, static

FLOAT8 = torch.float8_e4m3fn


@torch.library.custom_op("onnxplain_tests::grouped_mm", mutates_args=())
def _grouped(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """What aten._grouped_mm computes. torch captures that one in bfloat16 only, which ONNX Runtime does not multiply on the CPU."""
    bounds = [0, *ends.tolist(), len(a)]
    return torch.cat(
        [a[start:end] @ b[group] for group, (start, end) in enumerate(itertools.pairwise(bounds[:-1]))]
        + [a.new_zeros(len(a) - bounds[-2], b.shape[2])]
    )


@_grouped.register_fake
def _(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return a.new_empty(a.shape[0], b.shape[2])


def grouped(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The product of transformers' mixtures of experts."""
    # NOTE: registers the operator.
    import transformers.integrations.moe  # noqa: F401

    return torch.ops.transformers.grouped_mm_fallback(a, b, ends)


CASES: dict[str, Case] = {
    "kron": dynamic(lambda x: (torch.kron(x[0, 0], x[0]), torch.kron(x[0], torch.tensor([1.0, 2.0])), torch.kron(x[0], x[1, :2])), X),
    "products-over-dims": dynamic(
        lambda x: (
            *(torch.tensordot(x, x, dims=([0, -1], [0, 2])), torch.tensordot(x, x, dims=0), torch.tensordot(x[0, 0], x[1, 1], dims=1)),
            *(torch.tensordot(x, x[:1], dims=([0], [0])), torch.tensordot(x[:, :1], x, dims=([0, 1], [0, 1]))),
            torch.tensordot((9 * x).int(), (9 * x).int(), dims=([2], [2])),
        ),
        X,
    ),
    "sum-of-a-matrix-times-a-vector": dynamic(
        lambda a, b: (
            *(torch.addmv(b[0], a.t(), a[:, 0], beta=0.5), torch.addmv(b[:, 0], a, b[1], alpha=2), torch.addmv(b[0, 0], a, b[1])),
            torch.addmv(b[:, 0], a[:, a.shape[1] :], b[1, b.shape[1] :], beta=0.5, alpha=2),
            torch.addmv((9 * b[:, 0]).int(), (9 * a).int(), (9 * b[1]).int(), beta=2, alpha=a.shape[0]),
        ),
        PAIR,
    ),
    "cross-product-of-first-three": static(
        lambda a, b: [
            *(torch.cross(a, b), torch.cross(a[0], b[0]), torch.cross(a[:1], b), torch.cross(a, b[:, :, :1]), torch.cross(a, b, dim=1)),
            *(torch.cross(a, b, dim=-1), torch.cross((9 * a).int(), (9 * b).int())),
        ],
        (randn(2, 3, 4, 3), randn(2, 3, 4, 3)),
    ),
    "cross-product": dynamic(
        lambda x: (torch.cross(x[..., :3], x[..., -3:], dim=-1), torch.linalg.cross(x[:1, :, :3], x[..., :3])),
        (randn(2, 3, 4),),
        since="2.12",
    ),
    "sum-of-product-and-size": dynamic(lambda x: torch.addmm(x[:, :1], x, x.t(), beta=x.shape[0], alpha=x.shape[1]), PAIR[:1]),
    "sum-of-product-of-nothing": static(
        lambda a, b: (torch.addmm(a, a[:, :0], b[:0], beta=0.5), torch.addmm(a[0], a[:, :0], b[:0])), PAIR, expects=frozenset({"OXP4002"})
    ),
    "sum-of-product-of-columns": dynamic(lambda a, b: torch.addmm(b, a[:, a.shape[1] :], b[b.shape[0] :], beta=0.5), PAIR),
    "covariances": dynamic(
        lambda x: [
            *(x.cov(), torch.cov(x, correction=0), torch.cov(x[0], correction=2), torch.cov((9 * x).int()), x.corrcoef(), x[0].corrcoef()),
            torch.view_as_real(torch.complex(x, x.flip(1)).cov()),
            torch.view_as_real(torch.corrcoef(torch.complex(x, x.flip(1)))),
        ],
        (randn(4, 6),),
        # NOTE: the covariances of one variable are one number.
        expects=frozenset({"OXP1011"}),
    ),
    "distances-of-all-pairs": dynamic(
        lambda x: (torch.pdist(x), functional.pdist(x, 1), torch.pdist(x, math.inf), torch.pdist(x, 0)), (randn(5, 6),)
    ),
    "distances-of-pairs": static(lambda x: (torch.pdist(x), functional.pdist(x[:1], 3)), (randn(5, 6),)),
    "combinations": static(lambda x: (torch.combinations(x), torch.combinations(x, 3, True), torch.combinations(x, 9)), (randn(5),)),
    "least-squares": static(
        lambda a, b: (torch.linalg.lstsq(a, b).solution, torch.linalg.lstsq(a.mT, b[:3])[0], torch.linalg.lstsq(a, b).rank),
        (randn(5, 3), randn(5, 2)),
        runtime="1.24",
    ),
    "transposed-by-vector": dynamic(
        lambda z: [
            *((x := z[0]).t() @ x[:, 0], x.t().mv(x[:, 1]), x.t().abs() @ x[:, 0], x[None].transpose(1, 2) @ x[:, 0]),
            *(torch.nn.functional.linear(x.t(), x[:, 0]), torch.einsum("ij,i->j", x, x[:, 0]), x[0] @ x.t(), x @ x[0]),
        ],
        X,
    ),
    "linear": dynamic(
        lambda x, w: (functional.linear(x, w, w[:, 0]), functional.linear(x[0], w), functional.linear(x, w[0])),
        (randn(2, 3, 4), randn(5, 4)),
    ),
    "linear-of-ints": dynamic(lambda a, b: functional.linear(a, a[:2]) + b[0], INTS, since="2.12"),
    "products": dynamic(
        lambda a, b: [
            *(a[0].mm(b[0]), a.bmm(b), a @ b, a[0] @ b, a[0, 0] @ b[0], torch.addmm(a[0, :, :1], a[0], b[0])),
            torch.addmm(a[0, :, :1], a[0], b[0], beta=2, alpha=0.5),
        ],
        (randn(2, 3, 4), randn(2, 4, 5)),
    ),
    "products-of-ints": dynamic(lambda a, b: (a @ a.T, torch.addmm(b, a, a.T, beta=3, alpha=2), torch.mm(a, a.T)), INTS),
    "cdist": dynamic(
        lambda a, b: [
            *(torch.cdist(a, b, p=p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)),
            aten._cdist_forward(a, b, 2.0, 2),
            torch.cdist(a[0], b[0]),
        ],
        (randn(2, 4, 3).round(), randn(2, 5, 3).round()),
    ),
    "scaled-mm": static(
        lambda a, b: [
            aten._scaled_mm(a.to(FLOAT8), b.to(FLOAT8).t().contiguous().t(), torch.tensor(0.5), torch.tensor(2.0), out_dtype=torch.float32),
            aten._scaled_mm(
                *(a.to(FLOAT8), b.to(FLOAT8).t().contiguous().t(), torch.tensor(0.5), torch.tensor(2.0), torch.arange(16.0)),
                torch.tensor(3.0),
                out_dtype=torch.float32,
            ),
        ],
        (randn(16, 32), randn(32, 16)),
        tolerance=1e-2,
    ),
    "grouped-products": dynamic(
        lambda a: grouped(a, torch.arange(96.0).reshape(3, 4, 8), torch.tensor([1, 1, 3]) * (a.shape[0] // 4)), (randn(12, 4),)
    ),
    "grouped-products-of-torch": static(
        lambda a, b: torch.ops.onnxplain_tests.grouped_mm(a, b, torch.tensor([5, 5, 11])),
        (randn(12, 4), randn(3, 4, 8)),
        replaced={torch.ops.onnxplain_tests.grouped_mm.default: aten._grouped_mm.default},
    ),
    "grouped-product-of-one": static(grouped, (randn(12, 4), randn(1, 4, 8), torch.tensor([12]))),
    "sparse": static(
        lambda a, b: [
            *(torch.sparse.mm(a.to_sparse(), b), torch.sparse.addmm(b, a.to_sparse(), b, beta=2.0, alpha=0.5)),
            *(aten._sparse_addmm(b, a.to_sparse(), b, beta=0), aten._sparse_addmm(b, a.to_sparse(), b)),
        ],
        (torch.eye(4), randn(4, 3)),
    ),
    "conv1d": dynamic(layer(nn.Conv1d(8, 4, 3)), X),
    "conv1d-same": dynamic(layer(nn.Conv1d(8, 4, 4, padding="same", dilation=2)), X),
    "conv1d-no-batch": static(layer(nn.Conv1d(8, 4, 3)), (randn(8, 6),)),
    "conv2d-no-bias": dynamic(layer(nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), groups=2, bias=False)), IMAGE),
    "conv2d-same": dynamic(
        lambda x: (
            functional.conv2d(x, torch.ones(2, 4, 2, 3), padding="same"),
            functional.conv2d(x, torch.ones(2, 4, 2, 3), padding="valid"),
        ),
        IMAGE,
    ),
    "unfold": dynamic(
        lambda x: [
            *(functional.unfold(x, 2), functional.unfold(x[0], (3, 2), dilation=(1, 2), padding=(1, 0), stride=2)),
            *(functional.unfold(x, (1, 3), padding=(0, 1)), functional.unfold(x.half(), 3, dilation=2, padding=2, stride=(2, 1))),
        ],
        IMAGE,
    ),
    "unfold-static": static(lambda x: [functional.unfold(x, 2), functional.unfold(x[0], 3, padding=1, stride=2)], IMAGE),
    "unfold-of-a-fixed-height": dynamic(lambda x: functional.unfold(x.mean(2, keepdim=True).expand(-1, -1, 5, -1), 2), IMAGE),
    "conv3d-no-bias": dynamic(layer(nn.Conv3d(2, 3, 2, bias=False)), (randn(2, 2, 4, 5, 3),)),
    "conv3d-same": static(layer(nn.Conv3d(2, 3, 3, padding="same")), (randn(1, 2, 4, 5, 3),)),
    "conv-transpose1d": dynamic(layer(nn.ConvTranspose1d(8, 4, 3, stride=2, padding=1, output_padding=1)), X),
    "conv-transpose1d-padded-by-size": dynamic(
        lambda x: functional.conv_transpose1d(x, torch.ones(8, 4, 3), stride=3, output_padding=(x.shape[2] % 3,)), X
    ),
    "conv-transpose-of-doubles-cut-at-one-end": dynamic(
        lambda x: functional.conv_transpose1d(x.double(), torch.ones(8, 4, 1).double(), stride=2, padding=1, output_padding=1), X
    ),
    "conv-transpose-padded-beyond-the-stride": dynamic(
        lambda x: [
            functional.conv_transpose1d(x, torch.ones(8, 2, 3), bias, padding=padding, output_padding=2, groups=2, dilation=3)
            for padding in (0, 1, 4)
            for bias in (None, torch.arange(4.0))
        ],
        X,
    ),
    "conv-transpose2d": dynamic(layer(nn.ConvTranspose2d(4, 6, 3, groups=2, dilation=2)), IMAGE),
    "conv-transpose3d": static(layer(nn.ConvTranspose3d(2, 3, 2, stride=2)), (randn(2, 4, 5, 3),)),
    "convolution": dynamic(
        lambda x: [
            aten.convolution(x, torch.ones(2, 4, 2, 2), torch.ones(2), [2], [1], [1], False, [0], 1),
            aten.convolution(x, torch.ones(4, 2, 2, 2), None, [2], [1], [1], True, [1], 1),
        ],
        IMAGE,
    ),
    "convolution-with-settings": dynamic(
        lambda x: [
            aten._convolution(x, torch.ones(2, 4, 2, 2), torch.ones(2), [2], [1], [1], False, [0], 1, False, False, False, False),
            aten._convolution.deprecated(x, torch.ones(4, 2, 2, 2), None, [2], [1], [1], True, [1], 1, False, False, False),
        ],
        IMAGE,
        since="2.12",
    ),
    "gru-cell": dynamic(layer(nn.GRUCell(6, 5)), (randn(3, 6), randn(3, 5))),
    "lstm-cell": dynamic(layer(nn.LSTMCell(6, 5, bias=False)), (randn(3, 6),)),
    "lstm-cell-with-state": dynamic(
        lambda x, h, w: torch.lstm_cell(x, (h, x * 2), w.repeat(4, 1), w.repeat(4, 1) / 2, w[0].repeat(4), w[1].repeat(4)),
        (randn(3, 6), randn(3, 6), randn(6, 6)),
    ),
    "rnn-cells": dynamic(
        lambda x, h, w: (torch.rnn_tanh_cell(x, h, w, w / 2), torch.rnn_relu_cell(x, h, w, w / 2, w[0], w[1])),
        (randn(3, 6), randn(3, 6), randn(6, 6)),
    ),
    "eigenvalues": dynamic(
        lambda x: [
            torch.linalg.eigvalsh(x @ x.mT, UPLO="U"),
            (lambda w, v: (v * w.sigmoid().unsqueeze(-2)) @ v.mT)(*torch.linalg.eigh(x @ x.mT)),
            torch.linalg.eigh(x.double() @ x.mT.double())[0],
            torch.linalg.eigh(x.double() @ x.mT.double() * 1e-200)[0] * 1e200,
            *aten._linalg_eigh(x @ x.mT, "L", False),
        ],
        (randn(2, 3, 7),),
        expects=frozenset({"OXP1036"}),
    ),
    "eigenvalues-of-complex": static(
        lambda x: [
            torch.linalg.eigvalsh(torch.complex(x, x.flip(0))),
            *(each.abs() for each in torch.linalg.eigh(torch.complex(x, x.flip(0)), UPLO="U")),
            *(each.abs() for each in aten._linalg_eigh(torch.complex(x, x.flip(0)), "U", False)),
        ],
        (randn(2, 5, 5),),
        expects=frozenset({"OXP1036"}),
    ),
    "softmax-of-product": dynamic(lambda x: x.softmax(-1) @ x.transpose(1, 2), X),
    "pairs": dynamic(lambda a, b: (a @ b.T, a.T @ b), PAIR),
    "einsum-of-different-ellipses": static(
        lambda a, b: (torch.einsum("...ik,...j->ij", a, b), torch.einsum("...ik, ...k -> ...i", a, b)), (randn(1, 2, 3), randn(3))
    ),
    "addbmm-complex": static(
        lambda a, b: [
            torch.view_as_real(torch.addbmm(torch.complex(a[0], first), torch.complex(a, b), torch.complex(b, a), beta=beta, alpha=0.5))
            for first, beta in ((b[0], 2j), (b[0] * math.nan, 0))
        ],
        (randn(3, 4, 4), randn(3, 4, 4)),
    ),
    "lstsq-complex": static(
        lambda a, b: torch.cat([torch.linalg.lstsq(torch.complex(a, b), torch.complex(b, a), driver="gelsy").residuals, (a * b).flatten()]),
        (randn(4, 3), randn(4, 3)),
    ),
}
