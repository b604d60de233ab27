"""Decompositions of linear algebra, which ONNX does not have: factorisations column by column, for matrices of a fixed size.

They follow LAPACK (pivots, signs and the layout of the results), take batches, and complex matrices as well. Each column adds about ten
nodes, so matrices have at most `LIMIT` columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

LIMIT = 64
"""The largest number of rows or columns."""


def sizes_of(matrix: Tensor) -> tuple[int, int]:
    """The numbers of rows and columns. Raises ValueError if they are dynamic or large."""
    rows, columns = matrix.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int) or max(rows, columns) > LIMIT:
        raise ValueError(f"linear algebra is exported for matrices of a fixed size of at most {LIMIT}, this one is {rows} x {columns}")
    return rows, columns


def size_of(value: Tensor) -> Tensor:
    """The absolute values, as LAPACK compares pivots: |re| + |im| for complex numbers."""
    return value.real.abs() + value.imag.abs() if value.is_complex() else value.abs()


def _no_error(matrix: Tensor) -> Tensor:
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)


def empty(like: Tensor) -> Tensor:
    """An empty tensor of the dtype of `like`, as PyTorch returns it for what was not asked for."""
    return torch.empty(0, dtype=like.dtype, device=like.device)


def conj_transpose(matrix: Tensor) -> Tensor:
    """The transposed matrix, conjugated."""
    return matrix.mT.conj() if matrix.is_complex() else matrix.mT


def _factors(a: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L and U in one matrix, the rows exchanged in each step from 1, the order of the rows, and the first column without a pivot or 0."""
    rows, columns = sizes_of(a)
    place = torch.arange(rows, device=a.device)
    order = place.expand(*a.shape[:-2], rows)
    pivots, info = [], _no_error(a)
    for k in range(min(rows, columns)):
        if pivot:
            best = size_of(a[..., k:, k]).argmax(-1, keepdim=True) + k
            pivots.append(best + 1)
            exchanged = torch.where(place == k, best, torch.where(place == best, k, place))
            a = a.gather(-2, exchanged.unsqueeze(-1).expand(a.shape))
            order = order.gather(-1, exchanged)
        else:
            pivots.append(torch.full((*a.shape[:-2], 1), k + 1, device=a.device))
        head = a[..., k : k + 1, k : k + 1]
        is_zero = head == 0
        info = torch.where((info == 0) & is_zero[..., 0, 0], k + 1, info)
        if k + 1 < rows:
            factor = a[..., k + 1 :, k : k + 1] / torch.where(is_zero, 1, head)
            parts = [a[..., k + 1 :, :k], factor] if k else [factor]
            if k + 1 < columns:
                parts.append(a[..., k + 1 :, k + 1 :] - factor * a[..., k : k + 1, k + 1 :])
            a = torch.cat([a[..., : k + 1, :], torch.cat(parts, -1)], -2)
    return a, joined(pivots, torch.zeros(*a.shape[:-2], 0, device=a.device)).int(), order, info.int()


def joined(parts: Sequence[Tensor], nothing: Tensor, dim: int = -1) -> Tensor:
    """The parts as one tensor; `nothing` if there is none."""
    return torch.cat(list(parts), dim) if parts else nothing


def _lower(lu: Tensor) -> Tensor:
    rows, columns = lu.shape[-2:]
    least = min(rows, columns)
    return lu[..., :least].tril(-1) + torch.eye(rows, least, dtype=lu.dtype, device=lu.device)


def _upper(lu: Tensor) -> Tensor:
    return lu[..., : min(lu.shape[-2:]), :].triu()


def _permutation(order: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix P of A = P L U."""
    rows = order.shape[-1]
    return (torch.arange(rows, device=order.device).unsqueeze(-1) == order.unsqueeze(-2)).to(dtype)


def _order(pivots: Tensor, rows: int) -> Tensor:
    """The order of the rows after all exchanges."""
    place = torch.arange(rows, device=pivots.device)
    order = place.expand(*pivots.shape[:-1], rows)
    for k in range(pivots.shape[-1]):
        other = (pivots[..., k : k + 1] - 1).long()
        order = order.gather(-1, torch.where(place == k, other, torch.where(place == other, k, place)))
    return order


def _substitute(a: Tensor, b: Tensor, *, upper: bool, unitriangular: bool = False) -> Tensor:
    """X of A X = B for a triangular A, row by row."""
    size, _ = sizes_of(a)
    solved: dict[int, Tensor] = {}
    for i in reversed(range(size)) if upper else range(size):
        row = b[..., i : i + 1, :]
        known = sorted(solved)
        if known:
            row = row - a[..., i : i + 1, known[0] : known[-1] + 1] @ torch.cat([solved[each] for each in known], -2)
        solved[i] = row if unitriangular else row / a[..., i : i + 1, i : i + 1]
    return joined([solved[each] for each in range(size)], b, -2)


def _batched(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


def _solved(lu: Tensor, order: Tensor, b: Tensor) -> Tensor:
    b = b.gather(-2, order.unsqueeze(-1).expand(*order.shape, b.shape[-1]))
    return _substitute(lu, _substitute(lu, b, upper=False, unitriangular=True), upper=True)


def _eye_like(a: Tensor) -> Tensor:
    return torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)


def _lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    del check_errors
    lu, pivots, _, info = _factors(a, pivot)
    return lu, pivots, info


def _lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    lu, _, order, _ = _factors(a, pivot)
    return _permutation(order, a.dtype) if pivot else empty(a), _lower(lu), _upper(lu)


def _lu_unpack(lu: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    nothing = empty(lu)
    permutation = _permutation(_order(pivots, sizes_of(lu)[0]), lu.dtype) if unpack_pivots else nothing
    return permutation, _lower(lu) if unpack_data else nothing, _upper(lu) if unpack_data else nothing


def _lu_solve(lu: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    if not left:
        # NOTE: X A = B is A^H X^H = B^H.
        return conj_transpose(_lu_solve(lu, pivots, conj_transpose(b), adjoint=not adjoint))
    lu, b = _batched(lu, b)
    order = _order(pivots, sizes_of(lu)[0]).expand(lu.shape[:-1])
    if not adjoint:
        return _solved(lu, order, b)
    middle = _substitute(conj_transpose(lu.triu()), b, upper=False)
    return _permutation(order, lu.dtype) @ _substitute(conj_transpose(_lower(lu)), middle, upper=True, unitriangular=True)


def _inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    del check_errors
    lu, _, order, info = _factors(a, pivot=True)
    return _solved(lu, order, _eye_like(a)), info


def _solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    del check_errors
    lu, pivots, order, info = _factors(a, pivot=True)
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    columns = b.unsqueeze(-1) if is_vector else b
    if not left:
        columns = _lu_solve(lu, pivots, columns, left=False)
    else:
        wide, columns = _batched(lu, columns)
        columns = _solved(wide, order.expand(wide.shape[:-1]), columns)
    return columns.squeeze(-1) if is_vector else columns, lu, pivots, info


def _sign_of(order_of: Tensor) -> Tensor:
    """The sign of the exchanges: -1 for each row that changed its place."""
    moved = order_of != torch.arange(1, order_of.shape[-1] + 1, device=order_of.device)
    return 1 - 2 * (moved.sum(-1) % 2)


def _det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lu, pivots, _, _ = _factors(a, pivot=True)
    return _product(lu.diagonal(dim1=-2, dim2=-1)) * _sign_of(pivots), lu, pivots


def _product(values: Tensor) -> Tensor:
    result = torch.ones(values.shape[:-1], dtype=values.dtype, device=values.device)
    for k in range(values.shape[-1]):
        result = result * values[..., k]
    return result


def _slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lu, pivots, _, _ = _factors(a, pivot=True)
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    return _product(diagonal.sgn()) * _sign_of(pivots), diagonal.abs().log().sum(-1), lu, pivots


def _cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    del check_errors
    size, _ = sizes_of(a)
    a = conj_transpose(a) if upper else a
    columns: list[Tensor] = []
    info = _no_error(a)
    for k in range(size):
        column = a[..., k:, k : k + 1]
        if columns:
            known = torch.cat(columns, -1)
            column = column - known[..., k:, :] @ conj_transpose(known[..., k : k + 1, :])
        square = column[..., :1, :].real if a.is_complex() else column[..., :1, :]
        info = torch.where((info == 0) & ~(square[..., 0, 0] > 0), k + 1, info)
        column = torch.cat([torch.zeros_like(a[..., :k, :1]), column / square.sqrt()], -2)
        columns.append(column)
    factor = joined(columns, a).tril()
    return conj_transpose(factor) if upper else factor, info.int()


def _cholesky(a: Tensor, upper: bool = False) -> Tensor:
    return _cholesky_ex(a, upper=upper)[0]


def _cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    factor, b = _batched(conj_transpose(factor) if upper else factor, b)
    return _substitute(conj_transpose(factor), _substitute(factor, b, upper=False), upper=True)


def _cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    return _cholesky_solve(_eye_like(factor), factor, upper)


def _solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    if not left:
        return _solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    a, b = _batched(a, b)
    return _substitute(a, b, upper=upper, unitriangular=unitriangular)


def _triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    wide, b = _batched(a, b)
    if transpose:
        wide, upper = wide.mT, not upper
    return _substitute(wide, b, upper=upper, unitriangular=unitriangular), wide.mT if transpose else wide


def _geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """Householder's reflections and R in one matrix, and their factors (LAPACK's geqr2 and larfg)."""
    rows, columns = sizes_of(a)
    taus: list[Tensor] = []
    for k in range(min(rows, columns)):
        head, below = a[..., k : k + 1, k : k + 1], a[..., k + 1 :, k : k + 1]
        real = head.real if a.is_complex() else head
        rest = (below.abs() ** 2).sum(-2, keepdim=True) if k + 1 < rows else torch.zeros_like(real)
        length = (head.abs() ** 2 + rest).sqrt()
        beta = torch.where(real >= 0, -length, length)
        is_done = (rest == 0) & (head.imag == 0) if a.is_complex() else rest == 0
        beta = torch.where(is_done, real, beta)
        tau = torch.where(is_done, 0, (beta - head) / torch.where(is_done, 1, beta))
        column, vector = beta.to(a.dtype), torch.ones_like(head)
        if k + 1 < rows:
            scaled = below / torch.where(is_done, 1, head - beta)
            column, vector = torch.cat([column, scaled], -2), torch.cat([vector, scaled], -2)
        parts = [column]
        if k + 1 < columns:
            right = a[..., k:, k + 1 :]
            parts.append(right - (tau.conj() if a.is_complex() else tau) * (vector @ (conj_transpose(vector) @ right)))
        rows_below = torch.cat([a[..., k:, :k], *parts], -1) if k else torch.cat(parts, -1)
        a = torch.cat([a[..., :k, :], rows_below], -2) if k else rows_below
        taus.append(tau[..., 0])
    return a, joined(taus, torch.zeros(*a.shape[:-2], 0, dtype=a.dtype, device=a.device))


def _reflected(reflections: Tensor, tau: Tensor, target: Tensor, *, adjoint: bool) -> Tensor:
    """Q or its adjoint, the product of the reflections, times `target`."""
    rows, _ = sizes_of(reflections)
    count = tau.shape[-1]
    for k in range(count) if adjoint else reversed(range(count)):
        vector = torch.ones_like(reflections[..., k : k + 1, k : k + 1])
        if k + 1 < rows:
            vector = torch.cat([vector, reflections[..., k + 1 :, k : k + 1]], -2)
        factor = tau[..., k : k + 1].unsqueeze(-1)
        if adjoint and factor.is_complex():
            factor = factor.conj()
        below = target[..., k:, :]
        below = below - factor * (vector @ (conj_transpose(vector) @ below))
        target = torch.cat([target[..., :k, :], below], -2) if k else below
    return target


def _householder_product(reflections: Tensor, tau: Tensor) -> Tensor:
    rows, columns = sizes_of(reflections)
    start = torch.eye(rows, columns, dtype=reflections.dtype, device=reflections.device).expand(reflections.shape)
    return _reflected(reflections, tau, start, adjoint=False)


def _ormqr(reflections: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    if left:
        return _reflected(reflections, tau, other, adjoint=transpose)
    # NOTE: C Q is the adjoint of Q^H C^H.
    return conj_transpose(_reflected(reflections, tau, conj_transpose(other), adjoint=not transpose))


def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Q and R, by Householder's reflections. The diagonal of R is real."""
    rows, columns = sizes_of(a)
    packed, tau = _geqrf(a)
    if mode == "r":
        return empty(a), packed[..., : min(rows, columns), :].triu()
    width = rows if mode == "complete" else min(rows, columns)
    start = torch.eye(rows, width, dtype=a.dtype, device=a.device).expand(*a.shape[:-1], width)
    return _reflected(packed, tau, start, adjoint=False), packed[..., :width, :].triu()


_TERMS = 18
_SQUARINGS = 16


def _matrix_exp(a: Tensor) -> Tensor:
    """Taylor's polynomial of degree 18 of A / 2**s, whose norm is at most 1, squared s times (Bader, Blanes, Casas, 2019)."""
    sizes_of(a)
    # NOTE: squarings multiply the rounding errors, so they are made in double precision.
    wide = a.to(torch.complex128 if a.is_complex() else torch.float64)
    norm = wide.abs().sum(-2).amax(-1).unsqueeze(-1).unsqueeze(-1)
    count = norm.clamp(min=1.0).log2().ceil()
    scaled = wide / torch.exp2(count)
    identity = _eye_like(wide)
    result = identity
    for k in range(_TERMS, 0, -1):
        result = identity + (scaled @ result) / k
    for k in range(_SQUARINGS):
        result = torch.where(count > k, result @ result, result)
    return result.to(a.dtype)


_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "_linalg_det": _det,
    "_linalg_slogdet": _slogdet,
    "_linalg_solve_ex": _solve_ex,
    "cholesky": _cholesky,
    "cholesky_inverse": _cholesky_inverse,
    "cholesky_solve": _cholesky_solve,
    "geqrf": _geqrf,
    "linalg_cholesky_ex": _cholesky_ex,
    "linalg_householder_product": _householder_product,
    "linalg_inv_ex": _inv_ex,
    "linalg_lu": _lu,
    "linalg_lu_factor_ex": _lu_factor_ex,
    "linalg_lu_solve": _lu_solve,
    "linalg_matrix_exp": _matrix_exp,
    "linalg_qr": qr,
    "linalg_solve_triangular": _solve_triangular,
    "lu_unpack": _lu_unpack,
    "ormqr": _ormqr,
    "triangular_solve": _triangular_solve,
}

# NOTE: torch 2.15 has no aten::cholesky any more.
DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    getattr(torch.ops.aten, name).default: each for name, each in _BY_NAME.items() if hasattr(torch.ops.aten, name)
}
"""The decompositions by operator, of those that the installed torch has."""
