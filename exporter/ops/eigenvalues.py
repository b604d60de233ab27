"""Eigenvalues of symmetric and Hermitian matrices, by Jacobi's rotations.

Each step rotates disjoint pairs of rows and columns at once (Golub and Van Loan, Matrix Computations, section 8.5; Brent and Luk, 1985). In
round r, column k of n meets column (r - k) modulo n - 1, so that n - 1 rounds rotate every pair once; the column that would meet itself
meets the last one. Everything is computed in DOUBLE. Eigenvectors are unique only up to their signs or phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates
from .casts import cast
from .loops import loop

_DOUBLE = ir.DataType.DOUBLE
_SWEEPS = 20
"""The largest number of times that all pairs are rotated. Usually 6 to 10 are enough, since convergence is quadratic."""

Parts = tuple[Any, ...]
"""The real matrix, or the real and the imaginary part of a complex one."""


@translates("aten::_linalg_eigh", is_complex=False)
def eigh(A: ir.Value, UPLO: str = "L", compute_v: bool = True) -> list[Any]:  # noqa: N803  the names of the schema
    """aten::_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors).

    Matrices (..., N, N), of which only one triangle counts, give the eigenvalues (..., N) in ascending order and (..., N, N) with the
    eigenvectors as columns, which are left out without `compute_v`: a constant takes the place of every empty tensor.
    """
    values, vectors = _eigh((cast(A, int(_DOUBLE)),), _rank(A), UPLO, A.dtype)
    return [values, vectors[0] if compute_v else None]


@translates("aten::_linalg_eigh", is_complex=True)
def eigh_complex(A: ir.Value, UPLO: str = "L", compute_v: bool = True) -> list[Any]:  # noqa: N803  the names of the schema
    """aten::_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors).

    As for real matrices. The eigenvalues are real.
    """
    parts = [op.Squeeze(each, [-1]) for each in emit("Split", [cast(A, int(_DOUBLE)), [1, 1]], {"axis": -1}, outputs=2)]
    values, vectors = _eigh(tuple(parts), _rank(A) - 1, UPLO, A.dtype)
    return [values, op.Concat(*(op.Unsqueeze(each, [-1]) for each in vectors), axis=-1) if compute_v else None]


def _rank(value: ir.Value) -> int:
    assert value.shape is not None
    return len(value.shape)


def _eigh(given: Parts, rank: int, triangle: str, dtype: ir.DataType | None) -> tuple[Any, Parts]:
    """The eigenvalues and the eigenvectors, in `dtype`."""
    assert dtype is not None
    size = op.Shape(given[0], start=rank - 1, end=rank)
    place = op.Range(0, op.Squeeze(size), 1)
    identity = op.Cast(op.Equal(op.Unsqueeze(place, [0]), op.Unsqueeze(place, [1])), to=int(_DOUBLE))
    matrix = _hermitian(given, rank, triangle)
    norm = op.Sqrt(op.ReduceSum(_squares(matrix), [rank - 2, rank - 1], keepdims=1))
    # NOTE: rounding errors of DOUBLE are far below the precision of FLOAT, so that fewer rotations do.
    tiny = op.Mul(op.Squeeze(norm, [rank - 1]), 1e-15 if dtype is _DOUBLE else 1e-10)
    zeros = op.Mul(matrix[0], op.CastLike(0.0, matrix[0]))
    vectors = (op.Add(zeros, identity), *(zeros for _ in matrix[1:]))
    even = op.Add(size, op.Mod(size, 2))
    rounds = op.Max(op.Sub(even, 1), 1)

    def step(number: Any, quiet: Any, *state: Any) -> tuple[Any, list[Any]]:
        matrix, vectors = state[: len(given)], state[len(given) :]
        partner = _partners(place, op.Mod(number, rounds), size, even, rounds)
        side = op.Cast(op.Sign(op.Sub(partner, place)), to=int(_DOUBLE))
        beside = _gathered(matrix, partner, rank - 1)
        own = op.ReduceSum(op.Mul(matrix[0], identity), [rank - 1], keepdims=0)
        coupling = tuple(op.ReduceSum(op.Mul(each, identity), [rank - 1], keepdims=0) for each in beside)
        # NOTE: rounding makes the matrix a little asymmetric, but both columns of a pair must turn by the same angle.
        mirrored = _conjugate(_gathered(coupling, partner, rank - 2))
        coupling = tuple(op.Where(op.Greater(side, op.CastLike(0.0, side)), *each) for each in zip(coupling, mirrored, strict=True))
        cosine, sine, rotates = _rotation(own, op.Gather(own, partner, axis=rank - 2), coupling, side, tiny)
        columns = _rotated(matrix, beside, op.Unsqueeze(cosine, [-2]), [op.Unsqueeze(each, [-2]) for each in sine])
        rows = [op.Unsqueeze(each, [-1]) for each in _conjugate(sine)]
        both = _rotated(columns, _gathered(columns, partner, rank - 2), op.Unsqueeze(cosine, [-1]), rows)
        turned = _rotated(
            vectors, _gathered(vectors, partner, rank - 1), op.Unsqueeze(cosine, [-2]), [op.Unsqueeze(each, [-2]) for each in sine]
        )
        count = op.Where(op.Cast(op.ReduceMax(op.Cast(rotates, to=int(ir.DataType.INT32)), None, keepdims=0), to=9), 0, op.Add(quiet, 1))
        return op.Less(count, op.Squeeze(rounds)), [count, *both, *turned]

    quiet = op.Constant(value=ir.tensor(np.array(0)))
    state = [quiet, *matrix, *vectors]
    for each in state[1:]:
        each.shape = ir.Shape([None] * rank)
    _, *last = loop(step, state, op.Squeeze(op.Mul(rounds, _SWEEPS)))
    diagonal = op.ReduceSum(op.Mul(last[0], identity), [rank - 1], keepdims=0)
    values, order = op.TopK(diagonal, size, axis=rank - 2, largest=0, sorted=1)
    places = op.Expand(op.Unsqueeze(order, [-2]), op.Shape(last[0]))
    ordered = [cast(op.GatherElements(each, places, axis=rank - 1), int(dtype)) for each in last[len(given) :]]
    return cast(values, int(dtype)), tuple(ordered)


def _hermitian(given: Parts, rank: int, triangle: str) -> Parts:
    """The matrix that has a triangle of the given one, and its adjoint as the other."""
    upper = int(triangle.upper() == "U")
    swap = [*range(rank - 2), rank - 1, rank - 2]
    made = []
    for part, sign in zip(given, (1.0, -1.0), strict=False):
        inner = op.Trilu(part, 1 if upper else -1, upper=upper)
        both = op.Add(inner, op.Mul(op.Transpose(inner, perm=swap), sign))
        # NOTE: the imaginary part of the diagonal does not count.
        made.append(op.Add(both, op.Sub(op.Trilu(part, upper=upper), inner)) if sign > 0 else both)
    return tuple(made)


def _squares(matrix: Parts) -> Any:
    first, *rest = (op.Mul(each, each) for each in matrix)
    return op.Add(first, rest[0]) if rest else first


def _partners(place: Any, number: Any, size: Any, even: Any, rounds: Any) -> Any:
    """The column that each column meets in a round: itself if the number of columns is odd and it meets none."""
    met = op.Mod(op.Sub(number, place), rounds)
    last = op.Sub(even, 1)
    met = op.Where(op.Equal(met, place), last, met)
    met = op.Where(op.Equal(place, last), op.Mod(op.Mul(number, op.Div(even, 2)), rounds), met)
    return op.Where(op.Less(met, size), met, place)


def _gathered(matrix: Parts, places: Any, axis: int) -> Parts:
    return tuple(op.Gather(each, places, axis=axis) for each in matrix)


def _conjugate(value: Parts) -> Parts:
    return (value[0], *(op.Neg(each) for each in value[1:]))


def _times(a: Sequence[Any], b: Sequence[Any]) -> Parts:
    if len(a) == 1:
        return (op.Mul(a[0], b[0]),)
    return op.Sub(op.Mul(a[0], b[0]), op.Mul(a[1], b[1])), op.Add(op.Mul(a[0], b[1]), op.Mul(a[1], b[0]))


def _rotated(matrix: Parts, beside: Parts, cosine: Any, sine: Sequence[Any]) -> Parts:
    """Rotates rows or columns with those beside them."""
    changed = _times(sine, beside)
    return tuple(op.Sub(op.Mul(cosine, each), change) for each, change in zip(matrix, changed, strict=True))


def _rotation(own: Any, other: Any, coupling: Parts, side: Any, tiny: Any) -> tuple[Any, Parts, Any]:
    """The cosine, the sine with its phase, and whether the rotation is needed, for each column.

    The tangent t of the angle solves t**2 + 2 * tau * t - 1 = 0; the smaller root is taken.
    """
    length = op.Sqrt(_squares(coupling)) if len(coupling) > 1 else op.Abs(coupling[0])
    rotates = op.And(op.Greater(length, tiny), op.Not(op.Equal(side, op.CastLike(0.0, side))))
    divisor = op.Where(rotates, length, op.CastLike(1.0, length))
    tau = op.Div(op.Sub(other, own), op.Mul(divisor, 2.0))
    sign = op.Where(op.Equal(tau, op.CastLike(0.0, tau)), side, op.Sign(tau))
    tangent = op.Div(sign, op.Add(op.Abs(tau), op.Sqrt(op.Add(op.Mul(tau, tau), 1.0))))
    tangent = op.Where(rotates, tangent, op.CastLike(0.0, tangent))
    cosine = op.Reciprocal(op.Sqrt(op.Add(op.Mul(tangent, tangent), 1.0)))
    factor = op.Div(op.Mul(tangent, cosine), divisor)
    return cosine, tuple(op.Mul(each, factor) for each in _conjugate(coupling)), rotates
