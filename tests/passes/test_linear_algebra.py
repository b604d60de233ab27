"""Factorisations and what is computed with them, of batches, real and complex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from packaging.version import Version
from parity import check

import onnxplain
from onnxplain.rules import DecompositionFailed

linalg = torch.linalg
GENERATOR = torch.Generator().manual_seed(8)
WIDE = torch.randn(2, 4, 3, generator=GENERATOR)
SQUARE = torch.randn(2, 4, 4, generator=GENERATOR)
"""Both need pivots: no element of the diagonal is the largest of its column in every step."""


def positive(a: torch.Tensor) -> torch.Tensor:
    return a @ (a.mT.conj() if a.is_complex() else a.mT) + 4 * torch.eye(a.shape[-1])


OF_SQUARES: dict[str, Callable[[torch.Tensor], Any]] = {
    "inv": lambda a: linalg.inv(a),
    "solve": lambda a: (linalg.solve(a, a[0] * 2), linalg.solve(a, a[..., 0])),
    "solve from the right": lambda a: linalg.solve(a, a[:, :2] * 2, left=False),
    "det": lambda a: (linalg.det(a), *linalg.slogdet(a), torch.logdet(positive(a))),
    "lu": lambda a: (*linalg.lu(a), *linalg.lu_factor(a)),
    "lu_solve": lambda a: [linalg.lu_solve(*linalg.lu_factor(a), a, adjoint=each) for each in (False, True)],
    "lu_unpack": lambda a: torch.lu_unpack(*linalg.lu_factor(a)),
    "cholesky": lambda a: (linalg.cholesky(positive(a)), linalg.cholesky(positive(a), upper=True)),
    "cholesky_solve": lambda a: [
        each(linalg.cholesky(positive(a), upper=upper), upper=upper)
        for each in (lambda c, upper: torch.cholesky_solve(a, c, upper), torch.cholesky_inverse)
        for upper in (False, True)
    ],
    "solve_triangular": lambda a: [
        linalg.solve_triangular(positive(a), a, upper=upper, left=left, unitriangular=unit)
        for upper, left, unit in ((True, True, False), (False, True, True), (True, False, False))
    ],
    "triangular_solve": lambda a: [torch.triangular_solve(a, positive(a), transpose=each)[0] for each in (False, True)],
    "matrix_exp": lambda a: (linalg.matrix_exp(a), linalg.matrix_exp(a * 4)),
    "matrix_power": lambda a: linalg.matrix_power(a, -3),
}
OF_ALL: dict[str, Callable[[torch.Tensor], Any]] = {
    "qr": lambda a: (*linalg.qr(a), *linalg.qr(a, mode="complete"), linalg.qr(a, mode="r")[1]),
    "geqrf": lambda a: torch.geqrf(a),
    "householder_product": lambda a: linalg.householder_product(*torch.geqrf(a)),
    "ormqr": lambda a: (torch.ormqr(*torch.geqrf(a), a * 2), torch.ormqr(*torch.geqrf(a), a.mT, left=False, transpose=True)),
    "lu of any shape": lambda a: (*linalg.lu(a), *linalg.lu(a.mT)),
}


def with_parts(value: Any) -> list[torch.Tensor]:
    results = value if isinstance(value, list | tuple) else [value]
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in results]


@pytest.mark.parametrize("name", OF_SQUARES)
@pytest.mark.parametrize("is_complex", [False, True])
def test_of_square_matrices(name: str, is_complex: bool) -> None:
    compared(OF_SQUARES[name], SQUARE, is_complex)


@pytest.mark.skipif(Version(torch.__version__) >= Version("2.14"), reason="this torch has no torch.cholesky")
def test_of_the_deprecated_cholesky() -> None:
    compared(lambda a: torch.cholesky(positive(a)), SQUARE, is_complex=False)


@pytest.mark.parametrize("name", OF_ALL)
@pytest.mark.parametrize("is_complex", [False, True])
def test_of_matrices_of_any_shape(name: str, is_complex: bool) -> None:
    if is_complex and name == "ormqr":
        pytest.skip("PyTorch's fake kernel refuses transposed complex reflections")
    compared(OF_ALL[name], WIDE, is_complex)


def compared(function: Callable[[torch.Tensor], Any], x: torch.Tensor, is_complex: bool) -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return with_parts(function(torch.complex(x, y) if is_complex else x))

    args = (x, x.flip(-1) / 2)
    check(model, onnxplain.export(model, args), (args[0] * 1.25, args[1]), tolerance=1e-3)


@pytest.mark.parametrize("size", [0, 1])
def test_of_the_smallest_matrices(size: int) -> None:
    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return [linalg.inv(x), linalg.det(x), *linalg.qr(x), linalg.cholesky(x * x + torch.eye(size)), *linalg.lu_factor(x)]

    x = torch.ones(2, size, size)
    check(model, onnxplain.export(model, (x,)), (x,))


def test_matrices_of_a_dynamic_size_are_refused() -> None:
    with pytest.raises(onnxplain.ExportFailed) as caught:
        onnxplain.export(lambda a: linalg.inv_ex(a)[0], (torch.eye(3),), dynamic_shapes=({0: "n", 1: "n"},))
    assert [type(each.rule) for each in caught.value.log.findings] == [DecompositionFailed]
