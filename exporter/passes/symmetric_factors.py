"""Decompositions of the factors L and D of symmetric matrices, which ONNX does not have, for matrices of a fixed size.

They follow LAPACK's sytf2 and sytrs for lower triangles, and hetf2 and hetrs for Hermitian matrices (Bunch and Kaufman, 1977): each block
of D has one or two columns, as the elements decide. A matrix in the batch may begin a block where another one is within a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import OpOverload

from .linear_algebra import joined, size_of, sizes_of

_ALPHA = (1 + math.sqrt(17)) / 8
"""How much smaller than the largest element of its column a pivot may be."""


def _exchanged(matrix: Tensor, one: Tensor, other: Tensor, dims: tuple[int, ...] = (-2,)) -> Tensor:
    """`matrix` with the rows `one` and `other` (of the batch's shape) exchanged, and along each further dim of `dims`."""
    place = torch.arange(matrix.shape[-2], device=matrix.device)
    one, other = one.unsqueeze(-1), other.unsqueeze(-1)
    order = torch.where(place == one, other, torch.where(place == other, one, place))
    for dim in dims:
        index = order.unsqueeze(-1) if dim == -2 else order.unsqueeze(-2)
        matrix = matrix.gather(dim, index.expand(matrix.shape))
    return matrix


def _conj(value: Tensor, hermitian: bool) -> Tensor:
    return value.conj() if hermitian and value.is_complex() else value


def _real(value: Tensor, hermitian: bool) -> Tensor:
    """The diagonal of a Hermitian matrix is real, whatever it holds."""
    return value.real.to(value.dtype) if hermitian and value.is_complex() else value


def _at(matrix: Tensor, row: Tensor) -> Tensor:
    """The row of each matrix."""
    return matrix.gather(-2, row[..., None, None].expand(*matrix.shape[:-2], 1, matrix.shape[-1])).squeeze(-2)


def _choice(rest: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Which row becomes the pivot, whether its block has two columns, and whether the first column is 0."""
    head = size_of(_real(rest[..., 0, 0], hermitian))
    if rest.shape[-1] == 1:
        return torch.zeros_like(head, dtype=torch.int64), torch.zeros_like(head, dtype=torch.bool), head == 0
    below = size_of(rest[..., 1:, 0])
    largest, row = below.amax(-1), below.argmax(-1) + 1
    others = size_of(_at(rest, row))
    is_own = torch.arange(rest.shape[-1], device=rest.device) == row.unsqueeze(-1)
    in_row = torch.where(is_own, 0, others).amax(-1)
    diagonal = size_of(_real(_at(_at(rest, row).unsqueeze(-1), row).squeeze(-1), hermitian))
    is_zero = torch.maximum(head, largest) == 0
    stays = is_zero | (head >= _ALPHA * largest) | (head >= _ALPHA * largest * (largest / torch.where(is_zero, 1, in_row)))
    is_single = stays | (diagonal >= _ALPHA * in_row)
    return torch.where(stays, 0, row), ~is_single, is_zero


def _factor_ex(a: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """aten::linalg_ldl_factor_ex: L and D in one matrix, the exchanged rows from 1, negative for blocks of two, and the first zero or 0."""
    del check_errors
    size, _ = sizes_of(a)
    batch = a.shape[:-2]
    rest = a.tril() + _conj(a.tril(-1).mT, hermitian)
    columns, pivots = [], []
    info = torch.zeros(batch, dtype=torch.int32, device=a.device)
    is_second, pivot = torch.zeros(batch, dtype=torch.bool, device=a.device), torch.zeros(batch, dtype=torch.int64, device=a.device)
    for k in range(size):
        kept = rest
        row, is_double, is_zero = _choice(rest, hermitian)
        is_double = is_double & ~is_second
        rest = _exchanged(rest, is_double.long(), row, (-2, -1))
        head = _real(rest[..., :1, :1], hermitian)
        wide = is_double[..., None, None]
        divisor = torch.where(is_zero[..., None, None], 1, head)
        column, following = rest[..., 1:, :1], rest[..., 1:, 1:]
        single = column / divisor
        column, following = single, following - single @ _conj(column.mT, hermitian)
        if k + 1 < size:
            first, second, left = _pair(rest, hermitian, is_double)
            column, following = torch.where(wide, first, column), torch.where(wide, _framed(second, left), following)
        made = torch.cat([head, column], -2)
        again = is_second[..., None, None]
        made, following = torch.where(again, kept[..., :, :1], made), torch.where(again, kept[..., 1:, 1:], following)
        pivot = torch.where(is_second, pivot, torch.where(is_double, -(row + k + 1), row + k + 1))
        info = torch.where((info == 0) & is_zero & ~is_second, k + 1, info)
        pivots.append(pivot.unsqueeze(-1))
        columns.append(torch.cat([torch.zeros(*batch, k, 1, dtype=a.dtype, device=a.device), made], -2) if k else made)
        rest, is_second = following, is_double
    nothing = torch.zeros(*batch, 0, device=a.device)
    return joined(columns, a), joined(pivots, nothing).int(), info.int()


def _pair(rest: Tensor, hermitian: bool, is_double: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For a block of two columns: the first and the second one from the block's second row on, and what is left of the matrix.

    Args:
        rest: The matrix after the exchange.
        hermitian: Whether it is Hermitian.
        is_double: Whether there is such a block. Otherwise the results are any finite numbers.
    """
    wide = is_double[..., None, None]
    corner = torch.where(wide, rest[..., 1:2, :1], 1)
    one, other = _real(rest[..., :1, :1], hermitian), _real(rest[..., 1:2, 1:2], hermitian)
    by = corner.abs().to(rest.dtype) if hermitian and rest.is_complex() else corner
    first, second = other / by, one / by
    product = first * second - 1
    scale = 1 / torch.where(wide, product, 1) / by
    turn = corner / by
    x, y = rest[..., 2:, :1], rest[..., 2:, 1:2]
    w, v = scale * (first * x - turn * y), scale * (second * y - _conj(turn, hermitian) * x)
    left = rest[..., 2:, 2:] - x @ _conj(w.mT, hermitian) - y @ _conj(v.mT, hermitian)
    return torch.cat([rest[..., 1:2, :1], w], -2), torch.cat([other, v], -2), left


def _framed(column: Tensor, rest: Tensor) -> Tensor:
    """A matrix whose first column is `column`. Nothing reads the rest of its first row."""
    row = torch.zeros_like(column[..., 1:, :].mT)
    return torch.cat([column, torch.cat([row, rest], -2)], -1)


def _factor(a: Tensor, *, hermitian: bool = False) -> tuple[Tensor, Tensor]:
    return _factor_ex(a, hermitian=hermitian)[:2]


def _solve(factors: Tensor, pivots: Tensor, b: Tensor, *, hermitian: bool = False) -> Tensor:
    """aten::linalg_ldl_solve: X of L D L' X = B, with L' the transposed or adjoint L."""
    size, _ = sizes_of(factors)
    batch = torch.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors, pivots, b = factors.expand(*batch, size, size), pivots.expand(*batch, size).long(), b.expand(*batch, *b.shape[-2:])
    starts: list[Tensor] = []
    for k in range(size):
        starts.append((pivots[..., k] < 0) & ~_is_second(starts, k, pivots))
        b = _with_exchange(b, starts, k, pivots)
        b = torch.cat([b[..., : k + 1, :], b[..., k + 1 :, :] - _below(factors, k, starts[k]) * b[..., k : k + 1, :]], -2)
    b = _over_blocks(factors, starts, b, hermitian)
    for k in reversed(range(size)):
        row = b[..., k : k + 1, :] - _conj(_below(factors, k, starts[k]).mT, hermitian) @ b[..., k + 1 :, :]
        b = _with_exchange(torch.cat([b[..., :k, :], row, b[..., k + 1 :, :]], -2), starts, k, pivots)
    return b


def _is_second(starts: Sequence[Tensor], k: int, pivots: Tensor) -> Tensor:
    """Whether column `k` is the second one of a block; `starts` says for each column whether it begins a block of two."""
    return starts[k - 1] if k else torch.zeros(pivots.shape[:-1], dtype=torch.bool, device=pivots.device)


def _with_exchange(b: Tensor, starts: Sequence[Tensor], k: int, pivots: Tensor) -> Tensor:
    """`b` with the rows exchanged that the block beginning at column `k` exchanges: the last one of the block and another one."""
    last = torch.where(starts[k], min(k + 1, b.shape[-2] - 1), k)
    return _exchanged(b, last, torch.where(_is_second(starts, k, pivots), last, pivots[..., k].abs() - 1))


def _below(factors: Tensor, k: int, starts: Tensor) -> Tensor:
    """The column of L below its diagonal. The next element belongs to D if a block of two starts there."""
    column = factors[..., k + 1 :, k : k + 1]
    if not column.shape[-2]:
        return column
    return torch.cat([torch.where(starts[..., None, None], 0, column[..., :1, :]), column[..., 1:, :]], -2)


def _over_blocks(factors: Tensor, starts: Sequence[Tensor], b: Tensor, hermitian: bool) -> Tensor:
    """X of D X = B."""
    size = factors.shape[-1]
    rows: list[Tensor] = []
    second = b[..., :1, :]
    for k in range(size):
        diagonal, row = factors[..., k : k + 1, k : k + 1], b[..., k : k + 1, :]
        solved = torch.where(starts[k - 1][..., None, None], second, row / diagonal) if k else row / diagonal
        if k + 1 < size:
            wide = starts[k][..., None, None]
            corner = torch.where(wide, factors[..., k + 1 : k + 2, k : k + 1], 1)
            turned = _conj(corner, hermitian)
            one, other = diagonal / turned, factors[..., k + 1 : k + 2, k + 1 : k + 2] / corner
            divisor = torch.where(wide, one * other - 1, 1)
            x, y = row / turned, b[..., k + 1 : k + 2, :] / corner
            solved = torch.where(wide, (other * x - y) / divisor, solved)
            second = (one * y - x) / divisor
        rows.append(solved)
    return joined(rows, b, -2)


_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "linalg_ldl_factor": _factor,
    "linalg_ldl_factor_ex": _factor_ex,
    "linalg_ldl_solve": _solve,
}
DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {getattr(torch.ops.aten, name).default: each for name, each in _BY_NAME.items()}
"""The decompositions by operator."""
