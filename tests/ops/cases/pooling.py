"""Pooling and normalization layers, losses."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .case import IMAGE, PAIR, Case, X, aten, dynamic, layer, randn, static

CASES: dict[str, Case] = {
    "losses-of-pairs": dynamic(
        lambda a, b: [
            aten.margin_ranking_loss(a, b, b.sign()),
            aten.hinge_embedding_loss(a, b.sign()),
            aten.cosine_embedding_loss(a, b, b[:, 0].sign()),
            *(
                loss
                for reduction in ("none", "mean", "sum")
                for loss in (
                    functional.margin_ranking_loss(a, b, b.sign(), margin=0.5, reduction=reduction),
                    functional.hinge_embedding_loss(a, b.round(), margin=2.0, reduction=reduction),
                    functional.cosine_embedding_loss(a, b, b[:, 0].sign(), margin=0.1, reduction=reduction),
                    functional.cosine_embedding_loss(a[0], b[0], b[0, 0].sign(), reduction=reduction),
                )
            ),
        ],
        PAIR,
    ),
    "losses-of-dtypes": dynamic(
        lambda a, b: [
            *(loss(a, b > 0) for loss in (functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss)),
            *(functional.mse_loss(a.half(), b), functional.l1_loss(a, b.long(), reduction="none"), functional.mse_loss(a.int(), b)),
            functional.soft_margin_loss(a, b.sign().int()),
        ],
        PAIR,
    ),
    "adaptive": static(
        lambda x: [
            *(functional.adaptive_avg_pool2d(x, (1, 1)), functional.adaptive_avg_pool2d(x, (4, None))),
            functional.adaptive_avg_pool2d(x[0], (3, 1)),
            functional.adaptive_avg_pool2d(x[0], 1),
            *(functional.adaptive_avg_pool2d(x[..., :6], (3, 2)), functional.adaptive_avg_pool1d(x[0], 1)),
            functional.adaptive_avg_pool1d(x[0], 5),
            functional.adaptive_avg_pool3d(x[:, :, None], (1, 2, 3)),
        ],
        IMAGE,
    ),
    "adaptive-of-dynamic": dynamic(
        lambda x: [
            *(functional.adaptive_avg_pool1d(x, 4), functional.adaptive_avg_pool2d(x[None], (3, 2))),
            functional.adaptive_avg_pool2d(x[None], 1),
            functional.adaptive_avg_pool3d(x[None, None], (2, 1, 3)),
        ],
        X,
    ),
    "average": dynamic(
        lambda x: [
            *(functional.avg_pool2d(x, (3, 2), stride=2, padding=1, divisor_override=5), functional.avg_pool2d(x, 3)),
            functional.avg_pool2d(x[0], (2,)),
            *(functional.avg_pool2d(x, 2, padding=1, count_include_pad=False), functional.avg_pool3d(x, 2)),
            functional.avg_pool3d(x[None], (2,)),
        ],
        IMAGE,
    ),
    "average-of-lines": dynamic(
        lambda x: [
            *(functional.avg_pool1d(x[0], 2, 2, 1, count_include_pad=each) for each in (True, False)),
            *(functional.avg_pool1d(x, 3), functional.avg_pool1d(x[0], (2,), padding=1)),
        ],
        X,
    ),
    "average-of-short-lines": Case(
        lambda x: [
            *(functional.avg_pool1d(each[..., :3], 2, 2, 1, ceil_mode=True) for each in (x, x[0])),
            *(functional.avg_pool1d(x, 2, 3, 1, ceil_mode=True, count_include_pad=each) for each in (True, False)),
        ],
        X,
    ),
    "after-padding": dynamic(
        lambda x: [
            *(functional.max_pool2d(functional.pad(x - 5, (1, 1, 1, 1)), 3, 2, padding=each) for each in (0, 1)),
            functional.max_pool3d(functional.pad(x[None] - 5, (1, 0, 1, 0, 1, 0)), 2),
            functional.max_pool1d(functional.pad(x[0, 0] - 5, (1, 1)), 2, return_indices=True),
            functional.avg_pool2d(functional.pad(x, (0, 1, 0, 1)), 2, 1, padding=1),
            functional.avg_pool2d(functional.pad(x, (2, 3, 3, 2)), 2, 1, padding=1, count_include_pad=False),
            functional.lp_pool2d(functional.pad(x, (2, 2, 2, 2)), 2, 2),
        ],
        IMAGE,
    ),
    "maximum-of-lines": dynamic(
        lambda x: [
            *(functional.max_pool1d(x, *each) for each in ((3,), (3, 2), (3, 2, 1), ([2], [1], [1], [2]))),
            torch.max_pool1d(x[0], kernel_size=(3,), stride=(), padding=1, dilation=2),
            nn.MaxPool1d(3, 2, ceil_mode=True)(x[..., 1:]),
            torch.max_pool1d(x, 4, ceil_mode=True),
            torch.max_pool1d(x[..., 0, None] * torch.arange(6.0).sin(), 4, ceil_mode=True),
        ],
        (randn(2, 4, 11),),
    ),
    "resizing-with-antialiasing": dynamic(
        lambda x: [
            functional.interpolate(x, **size, mode=mode, align_corners=aligned, antialias=True)
            for mode in ("bilinear", "bicubic")
            for aligned in (True, False)
            for size in ({"size": (3, 11)}, {"size": (1, 2)}, {"scale_factor": (1.7, 0.6)}, {"scale_factor": 2.0})
        ],
        IMAGE,
    ),
    "resizing": dynamic(
        lambda x: [
            functional.interpolate(x, **size, mode=mode)
            for mode in ("nearest", "bilinear", "bicubic")
            for size in ({"size": (4, 11)}, {"size": (1, 2)}, {"scale_factor": (1.7, 0.6)}, {"scale_factor": 2.0}, {"size": x.shape[2:]})
        ],
        IMAGE,
    ),
    "resizing-with-aligned-corners": dynamic(
        lambda x: [
            functional.interpolate(x, **size, mode=mode, align_corners=True)
            for mode in ("bilinear", "bicubic")
            for size in ({"size": (4, 11)}, {"size": (1, 2)}, {"scale_factor": (1.7, 0.6)}, {"scale_factor": 2.0})
        ],
        IMAGE,
    ),
    "resizing-of-lines": dynamic(
        lambda x: [
            *(functional.interpolate(x, **size) for size in ({"size": 4}, {"scale_factor": 0.7}, {"size": x.shape[2] + 1})),
            *(
                functional.interpolate(x, **size, mode="linear", align_corners=aligned)
                for aligned in (True, False)
                for size in ({"size": 4}, {"size": 1}, {"scale_factor": 1.4}, {"size": x.shape[2] + 1})
            ),
        ],
        (randn(2, 4, 11),),
    ),
    "resizing-of-volumes": dynamic(
        lambda x: [
            functional.interpolate(x, **size, mode=mode)
            for mode in ("nearest", "trilinear")
            for size in ({"size": (4, 5, 6)}, {"scale_factor": 1.4}, {"scale_factor": 2.0}, {"size": x.shape[2:]})
        ],
        (randn(2, 3, 5, 4, 7),),
    ),
    "resizing-of-other-numbers": static(
        lambda x: [
            functional.interpolate(x.to(dtype), **size, mode=mode)
            for dtype in (torch.float16, torch.float64, torch.uint8)
            for mode in ("nearest", "bilinear")
            for size in ({"size": (4, 4)}, {"scale_factor": 2.0})
        ],
        (randn(2, 4, 28, 14).abs() * 50,),
        tolerance=1.0,
    ),
    "resizing-by-the-operators": dynamic(
        lambda x: [
            aten.upsample_nearest2d(x, [4, 5]),
            aten.upsample_nearest2d(x, [18, 14], 2.0, 2.0),
            aten.upsample_nearest1d(x[0], [6], 1.25),
            aten.upsample_nearest3d(x[:, :, None], [2, 4, 5]),
        ],
        (randn(2, 4, 9, 5),),
    ),
    "average-of-integers": dynamic(
        lambda x: [
            *(functional.avg_pool2d(x, 3, divisor_override=each) for each in (1, 2, 5, -4)),
            functional.avg_pool2d(x, 3, stride=2, padding=1, divisor_override=7),
            functional.avg_pool2d(x, 2),
        ],
        ((torch.arange(-40, 41).reshape(1, 1, 9, 9) * 5,)),
    ),
    "average-of-integers-rounded-up": static(
        lambda x: [functional.avg_pool2d(x, 2, stride=2, ceil_mode=True, divisor_override=3), functional.avg_pool2d(x, 2, ceil_mode=True)],
        ((torch.arange(-40, 41).reshape(1, 1, 9, 9) * 5,)),
        runtime="1.24",
    ),
    "sums-rounded-up-of-dynamic": dynamic(
        lambda x: [
            functional.avg_pool2d(x, *window, ceil_mode=True, divisor_override=5) for window in ((3, 2, 1), (2, 2, 1), (2, 3, 0), (4, 1, 2))
        ],
        (randn(2, 4, 9, 7),),
    ),
    "average-rounded-up-of-dynamic": dynamic(lambda x: functional.avg_pool2d(x, 3, stride=2, ceil_mode=True), (randn(2, 4, 9, 7),)),
    "average-rounded-up": static(
        lambda x: [
            functional.avg_pool2d(x, 2, padding=1, count_include_pad=False, ceil_mode=True),
            functional.avg_pool2d(x, 2, stride=2, padding=1, ceil_mode=True),
            functional.avg_pool2d(x[..., :8, :6], 3, stride=3, ceil_mode=True),
            functional.avg_pool2d(x[..., :8, :6], 2, ceil_mode=True),
        ],
        IMAGE,
    ),
    "batch-norm": dynamic(layer(nn.BatchNorm2d(4)), IMAGE),
    "batch-norm-plain": dynamic(layer(nn.BatchNorm2d(4, affine=False)), IMAGE),
    "batch-norm-batch-statistics": dynamic(layer(nn.BatchNorm1d(8, track_running_stats=False)), X),
    "batch-norm-function": dynamic(lambda x: functional.batch_norm(x, torch.zeros(8), torch.ones(8), training=True), X),
    "batch-norm-native": dynamic(
        lambda x: [
            *(*aten._native_batch_norm_legit.no_stats(x, None, torch.arange(8.0), True, 0.1, 1e-3),),
            *(*aten.native_batch_norm(x, None, None, torch.ones(8), torch.ones(8) * 2, False, 0.1, 1e-5),),
            *(*aten.native_batch_norm(x, torch.arange(8.0), None, None, None, True, 0.1, 1e-5),),
            *(*aten._native_batch_norm_legit_no_training(x, torch.arange(8.0), None, torch.ones(8), torch.ones(8) * 2, 0.1, 1e-3),),
            *(*aten._native_batch_norm_legit_functional(x, torch.arange(8.0), None, torch.ones(8), torch.ones(8) * 2, True, 0.1, 1e-3),),
            *(*aten._native_batch_norm_legit_functional(x, torch.arange(8.0), None, torch.ones(8), torch.ones(8) * 2, False, 0.1, 1e-3),),
        ],
        X,
    ),
    "instance-norm": dynamic(lambda x: functional.instance_norm(x, torch.zeros(8), torch.ones(8)), X),
    "instance-norm-running": dynamic(lambda x: functional.instance_norm(x, torch.ones(8), torch.ones(8) * 2, use_input_stats=False), X),
    "layer-norm": dynamic(
        lambda x: [
            functional.layer_norm(x, (6,)),
            functional.layer_norm(x, (8, 6), torch.arange(48.0).reshape(8, 6), torch.ones(8, 6), eps=1e-2),
            functional.layer_norm(x, (6,), None, torch.arange(6.0)),
        ],
        X,
    ),
    "group-norm": dynamic(
        lambda x: (
            functional.group_norm(x, 2),
            functional.group_norm(x, 4, torch.arange(4.0), torch.ones(4), eps=1e-2),
            functional.group_norm(x[..., 0, 0], 2, torch.arange(4.0)),
        ),
        IMAGE,
    ),
    "cross-entropy": static(
        lambda x: [
            functional.cross_entropy(logits, target, weight=weight, reduction=reduction, label_smoothing=smoothing)
            for target, logits in ((torch.tensor([1, -100, 3]), x[:, :, 0]), (x.argmax(1).clamp(1), x), (torch.tensor(2), x[0, :, 0]))
            for weight in (None, torch.arange(1.0, 9.0))
            for reduction in ("none", "mean", "sum")
            for smoothing in (0.0, 0.1)
        ],
        X,
    ),
    "cross-entropy-of-dynamic": dynamic(
        lambda x, t: functional.cross_entropy(x, t, label_smoothing=0.1, ignore_index=2), (randn(5, 4), torch.tensor([0, 1, 2, 3, 1]))
    ),
    "cross-entropy-probabilities": static(
        lambda x: [
            functional.cross_entropy(logits, logits.softmax(-1), weight=torch.arange(1.0, 9.0), reduction=reduction, label_smoothing=0.1)
            for logits in (x, x[0, :, 0])
            for reduction in ("none", "mean", "sum")
        ],
        X,
    ),
    "max-pool": dynamic(
        lambda x: [
            *(functional.max_pool2d(x, 2), functional.max_pool2d(x[0], (3, 2), 1, 1), functional.max_pool2d(x, 3, 2, 1, ceil_mode=True)),
            *(functional.max_pool1d(x[0], 3, dilation=2), functional.max_pool3d(x[:, :, None], (1, 2, 3))),
            # NOTE: a list of one number stands for all dims.
            *(functional.max_pool2d(x, [2]), functional.max_pool2d(x[0], [2], [1]), functional.max_pool3d(x[None], [2], dilation=[1])),
        ],
        IMAGE,
    ),
    "max-pool-of-dynamic": dynamic(
        lambda x: [
            functional.max_pool2d(x[:, :, :3], 2, 2, 1, ceil_mode=True),
            functional.max_pool2d(x[:, :, :5], 3, 2, 0, ceil_mode=True),
        ],
        IMAGE,
        since="2.12",
    ),
    "max-pool-rounded-up": static(
        lambda x: [
            functional.max_pool2d(x[..., :height, :width], kernel, stride, padding, dilation, ceil_mode=True)
            for height, width in ((4, 5), (3, 3), (5, 6), (8, 7))
            for kernel, stride, padding, dilation in ((2, 2, 1, 1), (3, 2, 1, 1), (2, 3, 0, 1), ((2, 3), (2, 1), (1, 0), 1), (3, 2, 1, 2))
        ],
        IMAGE,
    ),
    "adaptive-max-pool": static(
        lambda x: [
            *functional.adaptive_max_pool2d(x, (4, 3), return_indices=True),
            functional.adaptive_max_pool2d(x, 1),
            *functional.adaptive_max_pool1d(x[0], 5, return_indices=True),
            *functional.adaptive_max_pool3d(x, (3, 2, 4), return_indices=True),
        ],
        IMAGE,
    ),
    "adaptive-max-pool-of-dynamic": dynamic(
        lambda x: [*functional.adaptive_max_pool2d(x, (4, 1), return_indices=True), functional.adaptive_max_pool2d(x, (1, 5))], IMAGE
    ),
    "soft-margin-loss": static(
        lambda x: [
            functional.soft_margin_loss(each * 20, each.sign(), reduction=reduction)
            for each in (x, x.half())
            for reduction in ("none", "mean", "sum")
        ],
        X,
        tolerance=1e-2,
    ),
    "nearest-exact": dynamic(
        lambda x: [
            functional.interpolate(each, **size, mode="nearest-exact")
            for each, rank in ((x, 2), (x[0], 1), (x.unsqueeze(1), 3))
            for size in (
                *({"scale_factor": factor} for factor in (2.0, 0.5, 1.7)),
                *({"size": [5, 3, 2][:rank]}, {"size": [2 * length for length in each.shape[2:]]}),
            )
        ],
        IMAGE,
    ),
    "grid-sampler-3d": dynamic(
        lambda x, g: (
            [
                aten.grid_sampler_3d(x, g.tanh() * 1.2, mode, padding, aligned)
                for mode in (0, 1)
                for padding in (0, 1, 2)
                for aligned in (False, True)
            ]
            + [functional.grid_sample(x, g.tanh())]
        ),
        (randn(2, 2, 3, 4, 5), randn(2, 2, 3, 2, 3)),
    ),
}
