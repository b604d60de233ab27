"""Complex tensors. They are made of real inputs, and compared as real outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from .case import PAIR, Case, X, aten, dynamic, randn, static
from .shapes import NOT_ONE

POSITIONS = torch.tensor([[0, 2], [1, 1]])


def of(function: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
    """`function` of one or two complex tensors as a function of two real ones, with real results."""

    def of_parts(a: torch.Tensor, b: torch.Tensor) -> list[Any]:
        z, w = torch.complex(a, b), torch.complex(b, a + 1)
        results = function(z, w) if function.__code__.co_argcount == 2 else function(z)
        return [
            torch.view_as_real(each.resolve_conj()) if isinstance(each, torch.Tensor) and each.is_complex() else each for each in results
        ]

    return of_parts


def written(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A copy of a complex tensor with real elements written to parts of it."""
    z = z.clone()
    z[0], z[1, 2, 1:3], z[2, 0, 0] = x[1], x[0, 0, 1:3], 1.5
    return z


CUBE = (randn(3, 8, 6), randn(3, 8, 6))

CASES: dict[str, Case] = {
    "arithmetic": dynamic(
        of(
            lambda z, w: [
                *(z + w, z - w, z * w, z / w, z * z.real, z.real / w, z + z.imag, z.real - w, z * 2, z / 2.5, 1 / z, z * 1j),
                *(z.real * 1j, 2 - z),
                *(torch.add(z, w, alpha=2j), torch.sub(z, w, alpha=3), torch.rsub(z, w, alpha=2), z.square(), z.reciprocal(), z.conj(), -z),
                *(aten.add.Scalar(z, 2j, 3), aten.sub.Scalar(z, 1, 2j), aten.rsub.Scalar(z, 1j, 2), aten.mul.Scalar(z, 2j)),
                aten.div.Scalar(z, 2j),
                *(aten._conj_physical(z), aten.conj_physical(z), aten._conj_copy(z), aten.conj(z), z.conj().imag),
                *(aten._neg_view_copy(z), aten._neg_view(z), z + (1 - 2j)),
            ]
        ),
        PAIR,
    ),
    "functions": dynamic(
        of(
            lambda z, w: [
                *(z.exp(), z.expm1(), z.log(), z.log1p(), z.log2(), z.log10(), z.sqrt(), z.rsqrt(), z.sgn(), z.sigmoid(), z.abs()),
                z.angle(),
                *(z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), z.tanh()),
                *(z**3, z**-2, z**0, z**1, z**7, z**0.5, z**65, z**2j, z**w, 2**z, 1j**z, 2 ** (z * 0), 1j**w),
                *(((z * 0) ** w).isnan(), ((z * 0) ** (w * 0)).isnan(), ((z * 0) ** (w.real.abs() + 1))),
            ]
        ),
        PAIR,
    ),
    "special-values": static(
        of(
            lambda z: [
                *(z.sqrt(), z.angle(), z.sgn(), (z + 0.5).log(), z.abs(), z * 1e-30, (z * 1e25 + 1e-25).reciprocal() * 1e25, z**2),
                *(z == 0, z.logical_not(), (z + 1) / (z - z), (z - z).reciprocal(), z + 1e-30),
            ]
        ),
        (torch.tensor([0.0, -0.0, 1.0, -1.0, 0.0, 0.0, -2.0, -2.0]), torch.tensor([0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 0.0, 0.5])),
    ),
    "logic": dynamic(
        of(
            lambda z, w: [
                *(z == z, z == w, z != w, z != z.real, z == 1j, z != 2, z.logical_not(), z.isnan(), (z / (z - z)).isnan()),
                *(torch.where(z.real > 0, z, w), torch.where(z.real > 0, z, 0.5), torch.where(z.real > 0, 2j, z)),
                *(torch.where(z.imag > 0, w.real, z), torch.where(z.imag > 0, 1 + 2j, -1j)),
                *(z.masked_fill(z.real > 0, 2j), z.masked_fill(z.imag > 0, torch.tensor(1.0)), z.bool(), (z * 0).bool()),
            ]
        ),
        PAIR,
    ),
    "casts": dynamic(
        of(
            lambda z: [
                *(z.to(torch.complex128), z.real.to(z), z.to("cpu", torch.complex128), z.to(dtype=torch.complex128)),
                aten._to_copy(z, dtype=torch.complex128),
                *(torch.ops.prims.convert_element_type(z, torch.complex128), aten.to.dtype_layout(z, dtype=torch.complex128), z.real),
                *(z.imag, z.clone() + 1, torch.ops.prims.add(z, z), torch.ops.prims.div(z, z)),
                *(aten.to.device(z, "cpu", torch.complex128), torch.view_as_real(z), torch.view_as_complex(torch.view_as_real(z))),
                z.to(z.dtype) * 2,
                *(aten.view_as_real_copy(z), aten.view_as_complex_copy(torch.view_as_real(z)), z.positive() * 3),
                *(aten.resolve_neg(z) * 4, z.detach() * 5),
                torch.complex(z.real, z.imag[:1]),
            ]
        ),
        PAIR,
    ),
    "polar": dynamic(lambda a, b: torch.view_as_real(torch.polar(a.abs(), b)), PAIR),
    "sums": dynamic(
        of(
            lambda z: [
                *(z.sum(), z.sum(-1), z.sum((0, -2), keepdim=True), z.sum(1, dtype=torch.complex128), z.sum().sum(), z.sum().sum(0)),
                z[0, 0, 0].sum(),
                *(z.cumsum(-1), z.cumsum(0, dtype=torch.complex128), z.sum().cumsum(0) * 2, torch.linalg.vector_norm(z, dim=-1)),
            ]
        ),
        CUBE,
    ),
    # NOTE: torch captures the mean of complex tensors with fixed sizes.
    "means": static(
        of(
            lambda z: [
                z.mean(),
                z.mean(-1),
                z.mean((0, -2), keepdim=True),
                z.mean(1, dtype=torch.complex128),
                z.sum().mean(),
                z.sum().mean(0),
            ]
        ),
        CUBE,
    ),
    "products": dynamic(
        of(
            lambda z: [
                *(z @ z.mT, z[0] @ z[0].T, z[0].mm(z[1].mT), z.bmm(z.mH), z[0].mv(z[1, 0]), z[0, 0].dot(z[1, 1]), z[0] @ z[0, 0]),
                z[0, 0] @ z.mT,
                *(torch.einsum("bij,bkj->bik", z, z.conj()), z[0].t() * 2, z[0, 0].t() * 2),
            ]
        ),
        CUBE,
    ),
    "views": dynamic(
        of(
            lambda z: [
                *(z.reshape(-1), z.view(z.size(0), -1), z.reshape(z.size(0) * z.size(1), -1), aten.view_copy(z, [z.size(0), -1])),
                aten._unsafe_view(z, [-1]),
                *(z.flatten(), z.flatten(1), z.flatten(0, 1), z.flatten(-2), z.sum().flatten(), z.transpose(-1, -2), z.transpose(0, 1)),
                *(z.permute(2, 0, -2), z.mT, z.mH),
                *(z.unsqueeze(-1), z.unsqueeze(0), z[:1].squeeze(0), z[..., :1].squeeze(-1), z[:1, :1].squeeze()),
                *(z[:1, :, :1].squeeze((0, -1)), z.sum().squeeze() * 2),
                *(
                    z.expand(2, -1, -1, -1),
                    z.broadcast_to(2, -1, -1, -1),
                    z[..., :1].expand(-1, -1, 5),
                    z.repeat(1, 2, 1),
                    z.repeat(2, 1, 1, 3),
                    z[:, -1],
                ),
                *(z[..., 1:3], z[1:], z.select(-1, 2)),
                *(
                    torch.cat([z, z], -1),
                    torch.cat([torch.zeros(0), z]),
                    torch.stack([z, z.real], -1),
                    torch.stack([z, z]),
                    torch.stack([z], -1),
                    z.flip(-1),
                    z.repeat(1, 200, 1).flip(1)[:, ::100],
                ),
                *(z.flip((0, 1)), z.sum().flip([]) * 3),
                *(z.roll(2, -1), z.roll(5), z.roll((1, 2), (0, -1)), z.roll(z.size(0), 1), z.size(-1), z.numel(), aten.sym_numel(z)),
                *(functional.pad(z, (1, 2)), functional.pad(z, (1, 2, 0, 3), value=2.5), functional.pad(z, (-1, 1))),
            ]
        ),
        CUBE,
        expects=NOT_ONE,
    ),
    "splits": static(
        of(
            lambda z: [
                *(*z.split(2, -1), *z.chunk(3, -1), *z.unbind(-1), *z.unbind(1), *z.split([1, 5, 2], 1), *z.unsafe_split(4, 1)),
                *z.tensor_split(3, 1),
                *(*aten.split.sizes(z, [2, 6], 1), *aten.split_with_sizes(z, [2, 4], -1), *aten.split_copy.Tensor(z, 4, 1)),
                *aten.split_with_sizes_copy(z, [1, 7], 1),
            ]
        ),
        CUBE,
    ),
    "indexing": dynamic(
        of(
            lambda z: [
                *(
                    z[..., torch.tensor([0, 3])],
                    z.index_select(-1, torch.tensor([1, 0])),
                    *(z.index_select(0, i) for i in (torch.tensor(1), z.abs().argmax() % 2)),
                ),
                *(z[POSITIONS], z[:, POSITIONS, POSITIONS]),
                *(aten._unsafe_index.Tensor(z, [None, POSITIONS]), z.gather(-1, torch.zeros(3, 2, 1, dtype=torch.int64) + 1)),
                z.sum().gather(0, torch.tensor([0])),
                *(z.gather(0, POSITIONS[:, :, None]), z.sum().index_select(0, torch.tensor([0])) * 2),
            ]
        ),
        CUBE,
    ),
    "creation": dynamic(
        of(
            lambda z: [
                *(torch.zeros_like(z) + z, torch.ones_like(z) * z, torch.full_like(z, 2j)),
                *(torch.full_like(z.real, 2j, dtype=torch.complex64), torch.ones_like(z, dtype=torch.float32)),
                *(torch.zeros_like(torch.empty_like(z)), z.new_zeros(2, z.size(0)), z.new_ones(3), z.new_full((2, z.size(1)), 1 - 2j)),
                *(torch.zeros_like(z.new_empty(z.size(0))), z.new_full((3,), 2, dtype=torch.int64)),
                *(torch.full((z.size(0),), 1j), torch.zeros(z.size(0), dtype=torch.complex64)),
                *(torch.ones(z.size(1), dtype=torch.complex128), torch.full((2,), z.size(0), dtype=torch.complex64)),
                *(torch.zeros_like(torch.empty(z.size(0), dtype=torch.complex64)), aten.scalar_tensor(1 - 2j, dtype=torch.complex64) * z),
                *(z.new_ones(2, dtype=torch.complex128), torch.full((2,), 1 + 2j)),
            ]
        ),
        PAIR,
    ),
    "count": dynamic(
        of(lambda z: [(picked := z[z.abs() > 0.5]), picked.size(0)]), PAIR, replaced={aten.sym_size.int: aten.sym_numel.default}
    ),
    "fft": static(
        lambda x: [
            torch.view_as_real(each) if each.is_complex() else each
            for norm in (None, "ortho", "forward")
            for z in [torch.fft.fft(x, norm=norm)]
            for each in (
                *(z, torch.fft.ifft(z, dim=-2, norm=norm), torch.fft.rfft(x, dim=1, norm=norm), torch.fft.irfft(z, norm=norm, n=7)),
                *(torch.fft.fft(z, n=8, norm=norm), torch.fft.fft2(x, norm=norm), torch.fft.irfft2(z, norm=norm)),
                *(torch.fft.rfftn(x, norm=norm), torch.fft.ifftn(z, dim=(0, 2), norm=norm), torch.fft.ifftshift(z, dim=-1)),
            )
        ],
        X,
    ),
    "fft-of-halves": static(
        lambda x, y: [aten._fft_c2r(torch.complex(x, y), [0, 1, 2], norm, size) for norm in (0, 1, 2) for size in (10, 11)],
        CUBE,
        tolerance=1e-3,
    ),
    "fft-of-fixed-length": dynamic(
        lambda x: [
            torch.view_as_real(each.resolve_conj()) for n in (5, 12) for each in (torch.fft.rfft(x[0], n=n), torch.fft.ifft(x[0], n=n))
        ],
        X,
    ),
    "fft-of-several-dynamic": dynamic(
        lambda x: [
            torch.fft.irfftn(torch.fft.rfftn(x, dim=(1, 2), norm="ortho"), s=x.shape[1:], dim=(1, 2), norm="ortho"),
            torch.fft.hfft(torch.fft.ihfft(x, norm="forward"), n=x.size(2)),
        ],
        X,
    ),
    "fft-of-dynamic": dynamic(
        lambda x: [
            torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * x.size(0), norm="ortho"),
            torch.fft.irfft(torch.fft.rfft(x, norm="forward", dim=1), dim=1),
            torch.view_as_real(torch.fft.ifft2(torch.fft.fft2(x) * 2j)),
        ],
        X,
    ),
    "stft": static(
        lambda x: [
            torch.stft(x[0], 4, window=torch.hann_window(4), return_complex=True).abs(),
            torch.stft(x[0], 4, win_length=3, return_complex=True).abs(),
            torch.stft(x[0, 0], 4, 2, normalized=True, center=False, return_complex=True).real,
            torch.stft(x[0], 4, onesided=False, return_complex=True).imag,
            torch.stft(x[0] * 1j, 4, win_length=3, return_complex=True).imag,
            torch.stft(torch.ones(2, 16), 4, window=torch.hann_window(4), return_complex=True).abs() + x[0, 0, 0],
            torch.stft(torch.full((2, 16), 1j), 4, return_complex=True).imag + x[0, 0, 0],
            torch.stft(x[0] * 1j, 4, window=torch.hann_window(3), win_length=3, return_complex=True).abs(),
            torch.stft(x[0], 4, window=torch.hann_window(4) * 1j, return_complex=True).imag,
            torch.stft(x[0] * 1j, 4, normalized=True, return_complex=True).imag,
        ],
        X,
    ),
    "inverse-functions": dynamic(
        lambda x, y: [
            torch.view_as_real(each(torch.complex(x, y)))
            for each in (torch.asin, torch.acos, torch.atan, torch.asinh, torch.acosh, torch.atanh)
        ],
        CUBE,
    ),
    "large-and-small": static(
        lambda x, y: (
            torch.complex(x * 1e30, y * 1e30).abs(),
            torch.complex(x * 1e-30, y * 1e-30).abs(),
            torch.complex(x * 0, y * 0).abs(),
        ),
        CUBE,
    ),
    "variance": dynamic(
        lambda x, y: [
            *(torch.complex(x, y).var(), torch.complex(x, y).std(1, keepdim=True), torch.complex(x, y).var(0, correction=0)),
            *(torch.var_mean(torch.complex(x, y), 1)[0], torch.std_mean(torch.complex(x, y), 1, keepdim=True)[0]),
            torch.view_as_real(torch.std_mean(torch.complex(x, y), 1, keepdim=True)[1]),
        ],
        CUBE,
    ),
    "isfinite": static(lambda x, y: torch.complex(x / x.round(), y / y.round()).isfinite(), CUBE),
    "cumprod": dynamic(lambda x, y: torch.view_as_real(torch.complex(x, y).cumprod(1)), CUBE),
    "by-parts": static(
        lambda x, y: [
            torch.view_as_real(each)
            for z in [torch.complex(x, y)]
            for each in (
                *(
                    z.diagonal(),
                    z.diagonal(0, 1, 2),
                    z.index_add(1, torch.tensor([1, 1]), z[:, :2]),
                    z.index_fill(0, torch.tensor(1), 2 + 3j),
                ),
                *(
                    z.index_put((torch.tensor([0, 2]),), z[:2]),
                    z.masked_scatter(x > 0, z * 2),
                    z[x > 0],
                    z.put(torch.tensor([3]), z[0, 0, :1]),
                ),
                *(z.scatter(0, torch.zeros(1, 8, 6, dtype=torch.int64), z * 2), z.scatter(1, torch.ones(3, 1, 6, dtype=torch.int64), 1.5)),
                *(z.tril(), z.cumsum(1), z.diff(dim=1), torch.diag(z[0, 0])),
            )
        ],
        CUBE,
    ),
    "real-elements": static(
        of(
            lambda z: [
                *(written(z, z.real), z.clone().copy_(z.imag), z.real.cumsum(1, dtype=torch.complex64)),
                *(z.select_scatter(z[0].imag, 0, 2), z.slice_scatter(z[:1].imag, 0, 1, 2), z.diagonal_scatter(z.diagonal().real)),
                *(z.as_strided_scatter(z[0, :2, :2].imag, (2, 2), (6, 1)), z.index_fill(0, torch.tensor(1), z[0, 0, 0].imag.round())),
            ]
        ),
        CUBE,
    ),
    "nonzero": static(
        lambda x, y: ((z := torch.complex(x.round(), y.round())).nonzero(), aten.nonzero_static(z, size=5, fill_value=7)), CUBE
    ),
    "prod-of-a-vector": static(lambda z: torch.view_as_real(z.prod()), (torch.complex(randn(3), randn(3)),)),
    "prod": dynamic(
        lambda x, y: [
            torch.view_as_real(each)
            for z in [torch.complex(x, y) / 2]
            for each in (z.prod(), z.prod(1), z.prod(-1, keepdim=True), z.sum().prod(), z.sum().cumprod(0) * 2)
        ],
        CUBE,
    ),
    "exp2": dynamic(lambda x, y: torch.view_as_real(torch.complex(x, y).exp2()), CUBE),
    "angles-in-double": dynamic(lambda x, y: torch.complex(x.double(), y.double() * 1e3).angle(), CUBE, tolerance=1e-12, runtime="1.24"),
    "permuted": static(lambda x, y: (aten.empty_permuted([3, 8, 6], [1, 0, 2], dtype=torch.complex64).abs() >= x) | (y > -99), CUBE),
}
