"""Decompositions of what follows from singular values, which ONNX does not have: they are found from eigenvalues.

Everything is computed in double precision: the eigenvalues of A^H A are the squares of the singular values, so their errors are about
2e-16 times the square of the condition number. Singular vectors are unique only up to their signs or phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

from .linear_algebra import conj_transpose, empty, qr

Svd = tuple[Tensor, Tensor, Tensor]


def _svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Svd:
    """U (..., M, K), the singular values (..., K) in descending order, and V^H (..., K, N), with K the smaller size."""
    del driver
    rows, columns = a.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ValueError(f"singular values are exported for matrices of a fixed size, this one is {rows} x {columns}")
    if rows < columns:
        # NOTE: A^H = V S U^H.
        v, values, uh = _svd(conj_transpose(a), full_matrices, compute_uv)
        return (conj_transpose(uh), values, conj_transpose(v)) if compute_uv else (uh, values, v)
    wide = a.to(torch.complex128 if a.is_complex() else torch.float64)
    v = torch.linalg.eigh(conj_transpose(wide) @ wide)[1].flip(-1)
    scaled = wide @ v
    if not compute_uv:
        values = (scaled.abs() ** 2).sum(-2).sqrt().sort(descending=True)[0]
        return empty(a), values.to(a.dtype.to_real()), empty(a)
    # NOTE: the columns are orthogonal. The factor Q has their directions, and others where they are 0.
    u, triangle = qr(scaled, "complete" if full_matrices else "reduced")
    diagonal = triangle.diagonal(dim1=-2, dim2=-1)
    diagonal = diagonal.real if a.is_complex() else diagonal
    u = torch.cat([u[..., :columns] * torch.where(diagonal < 0, -1, 1).unsqueeze(-2), u[..., columns:]], -1)
    values, order = diagonal.abs().sort(descending=True)
    first = u[..., :columns].gather(-1, order.unsqueeze(-2).expand(*u.shape[:-1], columns))
    v = v.gather(-1, order.unsqueeze(-2).expand(v.shape))
    u = torch.cat([first, u[..., columns:]], -1)
    return u.to(a.dtype), values.to(a.dtype.to_real()), conj_transpose(v).to(a.dtype)


def _pinv(a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Tensor:
    """The pseudoinverse (..., N, M). Singular values of at most `atol`, or `rtol` times the largest, count as 0."""
    if a.numel() == 0:
        return a.new_zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]))
    default = torch.finfo(a.dtype).eps * max(a.shape[-2:])
    # NOTE: numbers that the caller gives are tensors on the CPU here.
    rtol, atol = (None if each is None else each.to(a.device) for each in (rtol, atol))
    if rtol is None:
        rtol = torch.full((), default, device=a.device) if atol is None else torch.where(atol > 0, 0.0, default)
    if hermitian:
        signed, u = torch.linalg.eigh(a)
        values, vh = signed.abs(), conj_transpose(u)
    else:
        u, values, vh = _svd(a)
        signed = values
    limit = rtol.unsqueeze(-1) * values.amax(-1, keepdim=True)
    limit = limit if atol is None else torch.maximum(atol.unsqueeze(-1), limit)
    inverse = torch.where(values > limit, signed.reciprocal(), 0.0).to(a.dtype)
    return (conj_transpose(vh) * inverse.unsqueeze(-2)) @ conj_transpose(u)


# NOTE: torch 2.13 cannot capture linalg_lstsq, whose residuals have a shape that depends on the data.
_BY_NAME: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("_linalg_svd", "default"): _svd,
    ("linalg_pinv", "atol_rtol_tensor"): _pinv,
}
DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    getattr(getattr(torch.ops.aten, name), overload): each for (name, overload), each in _BY_NAME.items()
}
"""The decompositions by operator."""
