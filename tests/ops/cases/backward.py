"""Operators of backward passes."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from .case import IMAGE, Case, aten, dynamic, randn, static

RESULTS = [randn(1, 4, 8, 6), randn(1, 6, 3, 3), randn(1, 4, 6, 5), randn(1, 4, 15, 13)]
WEIGHTS = [randn(4, 3, 3, 2), randn(6, 1, 3, 2), randn(4, 3, 3, 3), randn(3, 4, 3, 3)]
MATRICES = (randn(2, 4, 3), randn(2, 5, 3))


def convolution(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *options: object) -> list[torch.Tensor]:
    """All gradients of a convolution: of its input, its weights and its bias."""
    stride, padding, dilation, transposed, groups = options
    biases = [weight.shape[1] * groups if transposed else weight.shape[0]]  # type: ignore[operator]  # the number of groups
    return list(aten.convolution_backward(grad, x, weight, biases, stride, padding, dilation, transposed, [0, 0], groups, [True] * 3))


def distances(x: torch.Tensor, y: torch.Tensor, p: float) -> torch.Tensor:
    """The gradient of the distances between rows, of which one is 0."""
    y = torch.cat([x[:, :1], y[:, 1:]], 1)
    apart = torch.cdist(x, y, p)
    return aten._cdist_backward(apart + 1, x, y, p, apart)  # type: ignore[no-any-return]


CASES: dict[str, Case] = {
    "convolution": static(
        lambda x: [
            *convolution(RESULTS[0], x, WEIGHTS[0], [1, 1], [1, 0], [1, 1], False, 1),
            *convolution(RESULTS[1], x, WEIGHTS[1], [2, 2], [0, 0], [1, 1], False, 3),
            *convolution(RESULTS[2], x, WEIGHTS[2], [1, 1], [1, 1], [2, 2], False, 1),
            *convolution(RESULTS[3], x, WEIGHTS[3], [2, 2], [1, 1], [1, 1], True, 1),
        ],
        (randn(1, 3, 8, 7),),
    ),
    "average-pooling": dynamic(
        lambda x: [
            aten.avg_pool2d_backward(functional.avg_pool2d(x, 2) * 2, x, [2, 2], [], [0, 0], False, True, None),
            aten.avg_pool2d_backward(functional.avg_pool2d(x, 3, 2, 1), x, [3, 3], [2, 2], [1, 1], False, True, 5),
        ],
        IMAGE,
    ),
    "average-pooling-of-part-windows": static(
        lambda x: [
            aten.avg_pool2d_backward(functional.avg_pool2d(x, 3, 2, 1, ceil, inside), x, [3, 3], [2, 2], [1, 1], ceil, inside, None)
            for ceil in (False, True)
            for inside in (False, True)
        ],
        IMAGE,
    ),
    "adaptive-pooling": static(
        lambda x: [
            aten._adaptive_avg_pool2d_backward(functional.adaptive_avg_pool2d(x, (3, 5)), x),
            aten._adaptive_avg_pool3d_backward(functional.adaptive_avg_pool3d(x, (2, 3, 2)), x),
            aten.adaptive_max_pool2d_backward(x[..., :3, :2] * 2, x, functional.adaptive_max_pool2d(x, (3, 2), return_indices=True)[1]),
            aten.adaptive_max_pool3d_backward(x[:, :2, :3, :2], x, functional.adaptive_max_pool3d(x, (2, 3, 2), return_indices=True)[1]),
        ],
        IMAGE,
    ),
    "padding": static(
        lambda x: (
            aten.replication_pad1d_backward(functional.pad(x[0], (1, 2), mode="replicate"), x[0], [1, 2]),
            aten.replication_pad2d_backward(functional.pad(x, (1, 2, 0, 3), mode="replicate"), x, [1, 2, 0, 3]),
        ),
        IMAGE,
    ),
    "shrinking": static(lambda x: (aten.hardshrink_backward(x, 2 * x, 0.5), aten.softshrink_backward(x, 2 * x, 0.5)), IMAGE),
    "distances": static(lambda x, y: [distances(x, y, p) for p in (0.0, 1.0, 1.5, 2.0, 3.0, math.inf)], MATRICES),
    "distances-of-pairs": static(
        lambda x, y: [aten._pdist_backward(torch.pdist(x[0], p) + y.sum(), x[0], p, torch.pdist(x[0], p)) for p in (1.0, 2.0)], MATRICES
    ),
    "weight-norm": static(
        lambda x, y: aten._weight_norm_interface_backward(
            x, x * 2, y[:, :1, :1].contiguous(), torch.linalg.vector_norm(x * 2, 2, (1, 2), keepdim=True), 0
        ),
        MATRICES,
    ),
}
