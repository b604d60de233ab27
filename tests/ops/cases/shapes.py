"""Views and cuts of tensors, and how they are joined."""

from __future__ import annotations

import torch
from torch.nn import functional

from .case import PAIR, Case, X, aten, dynamic, randn, static

NOTHING = torch.zeros(0)

# NOTE: torch takes for granted that the sizes of squeezed dims are not 1.
NOT_ONE = frozenset({"OXP1011"})

CASES: dict[str, Case] = {
    "repeated-by-a-tensor": dynamic(
        lambda x: [
            *(torch.repeat_interleave(torch.tensor([0, 2, 0, 0, 3, 1, 0], dtype=dtype)) for dtype in (torch.int64, torch.int32)),
            *(
                x.repeat_interleave(torch.tensor([2, 0, 3, 0, 0, 1, 1, 0]), dim=1),
                torch.repeat_interleave(torch.tensor([3, 2]), output_size=5),
            ),
            x[:1].repeat_interleave(torch.zeros(1, dtype=torch.int64), dim=0),
        ],
        X,
    ),
    "view": dynamic(
        lambda x: [
            *(x.view(x.size(0), -1), x.reshape(x.size(0) * x.size(1), x.size(2)), x.reshape(-1), aten.view_copy(x, [x.size(0), -1])),
            x[:, :4, :2].reshape(x.size(0), 8),
            *(aten._unsafe_view(x, [-1, x.size(2)]), x.view(x.size(0), 1, x.size(1), x.size(2)), x.unsqueeze(0), x.unsqueeze(-1)),
        ],
        X,
    ),
    "view-of-fixed": static(lambda x: x.view(6, -1).transpose(0, 1).reshape(-1), X),
    "view-of-nothing": static(lambda x: (x[:0].reshape(0, 24, 2), x[:0].reshape(2, 0), x + 1), X),
    "flatten": dynamic(
        lambda x: [
            *(x.flatten(), x.flatten(1), x.flatten(0, 1), x.flatten(1, 1) + 1, x[None].flatten(1, 2), x[None, None].flatten(2, 3)),
            x.sum().flatten(),
            x[None].flatten(0, 1),
        ],
        X,
    ),
    "order": dynamic(lambda x: (x.transpose(0, -1), x.mT, x.permute(2, 0, 1), x.permute(-1, -3, -2), x.sum().transpose(0, -1) + 1), X),
    "squeeze": dynamic(
        lambda x: (
            x[:, :1].squeeze(),
            x[:1].squeeze((0, 1)),
            x[:, :1].squeeze(1),
            x.squeeze(0) + 1,
            x[:1, :, :1].squeeze((0, -1)),
            x.sum().squeeze(0),
        ),
        X,
        expects=NOT_ONE,
    ),
    "expand": dynamic(lambda x: (x[:, :1].expand(-1, x.size(1), -1) * 2, x.expand(2, -1, -1, -1), x[:1].expand(4, -1, -1)), X),
    "broadcast-to": dynamic(lambda x: (torch.broadcast_to(x, (2, -1, -1, -1)), x[:1].broadcast_to(4, -1, -1)), X),
    "repeat_interleave": dynamic(
        lambda x: [
            *(x.repeat_interleave(2), x.repeat_interleave(3, 1), x.repeat_interleave(2, -1), x[0, 0, 0].repeat_interleave(2)),
            *(x.repeat_interleave(x.size(1) - 3, dim) for dim in (None, 0, 1, -1)),
            *(x.repeat_interleave(0, 1), x.repeat_interleave(x.size(1) % 2, 0)),
        ],
        X,
    ),
    "roll": dynamic(
        lambda x: [
            *(x.roll(1), x.roll((2, -1), (0, 2)), x.roll(-1, -1), x.roll(11, 1), x.roll(x.size(1) - 2, 1), x.roll(-x.size(0))),
            *((x > 0).roll(1, 0), x[:, x.size(1) :].roll(1), x[:, x.size(1) :].roll(1, 1)),
        ],
        X,
    ),
    "slice": dynamic(
        lambda x: [
            *(x[1:], x[:, :-1], x[:, 1::2], x[..., -2:], x[:, : x.size(1) // 2], x[:] + 1, x[1:-1, 2:4], x[:, x.size(1) - 2 :]),
            *(x[0], x[:, -1], x.select(-1, 2), aten.slice.Tensor(x, -1, 1, None, 2)),
        ],
        X,
    ),
    "narrow": dynamic(
        lambda x: [
            *(x.narrow(0, 0, 1), x.narrow(1, 1, 2), x.narrow(-1, 0, 0), x.narrow(1, -2, 2), x.narrow(1, -2, 1), x.narrow(1, -1, 0)),
            *(x.narrow(1, 1, x.size(1) - 1), x.narrow(1, x.size(1) - 2, 2)),
            *(x.narrow(1, -x.size(0), x.size(0)), x.narrow(0, -1, x.size(0) // 4)),
        ],
        X,
    ),
    "split": static(
        lambda x: [
            *(*x.split(3, 1), *x.split([1, 5, 2], 1), *x.chunk(4, 2), *x.tensor_split(3, 1), x.split(8, 1)[0] + 1, *x.unsafe_split(4, 1)),
            *(*aten.split.sizes(x, [2, 6], 1), *aten.split_with_sizes(x, [2, 4], -1), *aten.split_copy.Tensor(x, 4, 1)),
            *(*aten.split_with_sizes_copy(x, [1, 7], 1), *x.unbind(1), *x[:, :1].unbind(1), *x.unbind(-1)),
        ],
        X,
    ),
    "chunk": dynamic(lambda x: [*x.chunk(3, 1), *x.chunk(5, 1), *x.chunk(1, -1), *x[:, :0].chunk(2, 1), *x[:, :1].chunk(2, 1)], X),
    "reshape-as": dynamic(
        lambda x: (x.reshape_as(x.transpose(0, 1)), x[:, 0].reshape_as(x[:, 0].T), x[:, :0].reshape_as(x[:0]), x[0].reshape_as(x[1].T)), X
    ),
    # NOTE: of size 1, `chunk` makes one part.
    "split-of-dynamic": dynamic(
        lambda x: (torch.cat(x.chunk(2, dim=1), dim=1), *x.split(2, 0)[:1], x.to(torch.int8).split(2, 0)[0]),
        X,
        expects=frozenset({"OXP1011"}),
    ),
    "split-into-one": dynamic(lambda x: (x.split(x.shape[0])[-1], x[:-1].split(x.shape[0] - 1)[-1], x.split(len(x))[0] + 1), X),
    "join": dynamic(lambda a, b: (torch.cat([a, b]), torch.cat([a, b, a], -1), torch.cat([NOTHING, a]), torch.stack([a, b], 1)), PAIR),
    "join-of-nothing": static(lambda a, b: (torch.cat([NOTHING, NOTHING]), torch.cat([a[:0], b]), a + 1), PAIR),
    "diff": dynamic(lambda x: x.diff(dim=1), X),
    "replicated-edges-that-are-cut-off": dynamic(
        lambda x: [
            *(functional.pad(x, pad, mode="replicate") for pad in ((-2, 1), (-1, -2), (0, -1))),
            *(functional.pad(x[None], pad, mode="replicate") for pad in ((0, 0, 2, -2), (1, -1, -3, 4))),
            functional.pad(x[None, None], (1, 1, -1, 3, 1, 0), mode="replicate"),
        ],
        X,
    ),
    "replicated-edges-of-nothing": static(lambda x: [functional.pad(x, pad, mode="replicate") for pad in ((-6, 7), (9, -6))], X),
    "pads": dynamic(lambda x: (functional.pad(x, (-1, 2)), functional.pad(x, (0, 0, 0, x.size(1) % 2))), X),
    "vmap": static(lambda x: torch.vmap(lambda row: (row @ row.T).softmax(0))(x), X),
    "vmap-of-complex": static(lambda x: torch.view_as_real(torch.vmap(lambda z: z * 2 + 1)(torch.complex(x, x + 1).flatten())), X),
    "vmap-of-two": static(lambda x: torch.vmap(torch.vmap(lambda a, b: a * b.sum(), in_dims=(0, None)), in_dims=(0, 0))(x, x), X),
    "scalar": static(lambda x: (x.reshape(()), x.expand(3), x.squeeze()), (randn(1),)),
    "at-least": dynamic(
        lambda x: [
            result * 2 for each in (torch.atleast_1d, torch.atleast_2d, torch.atleast_3d) for result in each([x, x[0], x[0, 0], x[0, 0, 0]])
        ],
        X,
    ),
}
