"""Factorisations and what is computed with them, of batches, real and complex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from packaging.version import Version
from parity import check

import onnxplain
from onnxplain.rules import DecompositionFailed, SpecializedDynamicDim

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
    "matrix_exp": lambda a: (linalg.matrix_exp(a), linalg.matrix_exp(a * 4), linalg.matrix_exp(torch.stack([a, a * 2, a * 9]))),
    "matrix_power": lambda a: linalg.matrix_power(a, -3),
}
OF_ALL: dict[str, Callable[[torch.Tensor], Any]] = {
    "qr": lambda a: (*linalg.qr(a), *linalg.qr(a, mode="complete"), *linalg.qr(a, mode="r")),
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
        return [
            linalg.inv(x),
            linalg.det(x),
            *linalg.qr(x),
            linalg.cholesky(x * x + torch.eye(size)),
            *linalg.lu_factor(x),
            *torch.geqrf(x),
        ]

    x = torch.ones(2, size, size)
    check(model, onnxplain.export(model, (x,)), (x,))


@pytest.mark.parametrize("dims", [{0: "n", 1: "n"}, {1: "n"}])
def test_matrices_of_a_dynamic_size_are_refused(dims: dict[int, str]) -> None:
    with pytest.raises(onnxplain.ExportFailed) as caught:
        onnxplain.export(lambda a: linalg.inv_ex(a)[0], (torch.eye(3),), dynamic_shapes=(dims,))
    assert {type(each.rule) for each in caught.value.log.findings} == {SpecializedDynamicDim}


BATCHED = ("cholesky", "inv", "lu_unpack", "qr", "solve", "triangular_solve")
"""Functions with the steps of all, but for those that PyTorch computes for tensors of fixed sizes only during a capture."""


@pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="this torch decides by the size of the batch")
@pytest.mark.parametrize("name", BATCHED)
def test_the_batch_stays_dynamic_where_all_dims_may(name: str) -> None:
    function, x = (OF_SQUARES[name], SQUARE) if name in OF_SQUARES else (OF_ALL[name], WIDE)
    program = onnxplain.export(lambda a: with_parts(function(a)), (torch.cat([x, x / 2])[:3],), dynamic_shapes=True)
    # NOTE: `linalg.solve` tells a batch of vectors from a matrix by the sizes of the batch.
    assert {each.rule.id for each in program.diagnostics.findings} <= {"OXP1034", *{"solve": ["OXP1011"], "qr": ["OXP4004"]}.get(name, [])}
    check(lambda a: with_parts(function(a)), program, (x * 1.25,), tolerance=1e-3)


# NOTE: the leading minors of these are positive up to a place, and then zero or negative.
MINORS = torch.stack(
    [
        torch.eye(3),
        torch.zeros(3, 3),
        torch.diag(torch.tensor([1.0, 0.0, 1.0])),
        torch.diag(torch.tensor([1.0, 4.0, -1.0])),
        torch.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]]),
    ]
)


@pytest.mark.parametrize("is_complex", [False, True])
def test_the_first_minor_that_is_not_positive(is_complex: bool) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return linalg.cholesky_ex(x + 0j if is_complex else x, upper=is_complex).info

    program = onnxplain.export(model, (torch.eye(3).expand(5, 3, 3).clone(),))
    assert program(MINORS)[0].tolist() == model(MINORS).tolist() == [0, 1, 2, 3, 2]


def test_the_first_column_without_a_pivot() -> None:
    a = torch.stack([torch.eye(3), torch.zeros(3, 3), torch.ones(3, 3), torch.diag(torch.tensor([2.0, 3.0, 0.0]))])

    def model(x: torch.Tensor) -> list[torch.Tensor]:
        factors = [*linalg.lu_factor_ex(x), *linalg.lu_factor_ex(x[..., :2]), *linalg.lu_factor_ex(x[..., :2, :])]
        return [*factors, linalg.inv_ex(x).info, linalg.solve_ex(x, x).info, linalg.det(x), *linalg.slogdet(x)]

    program = onnxplain.export(model, (torch.randn(4, 3, 3, generator=GENERATOR),))
    check(model, program, (a,))
    assert linalg.inv_ex(a).info.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (4, 2), (2, 4)])
def test_factors_without_pivots(rows: int, columns: int) -> None:
    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return [*linalg.lu(x, pivot=False), *linalg.lu_factor_ex(x, pivot=False)]

    x = positive(SQUARE)[..., :rows, :columns].contiguous()
    # NOTE: PyTorch has no kernel for this on the CPU, so that the product tells.
    order, lower, upper, packed, pivots, info = onnxplain.export(model, (x,))(x)
    least = min(rows, columns)
    assert (order.numel(), pivots.tolist(), info.tolist()) == (0, [[*range(1, least + 1)]] * 2, [0, 0])
    assert (tuple(lower.shape[1:]), tuple(upper.shape[1:])) == ((rows, least), (least, columns))
    torch.testing.assert_close(lower @ upper, x, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(lower, lower.tril(-1) + torch.eye(rows, least))
    torch.testing.assert_close(upper, upper.triu())
    torch.testing.assert_close(
        packed,
        torch.nn.functional.pad(lower - torch.eye(rows, least), (0, columns - least))
        + torch.nn.functional.pad(upper, (0, 0, 0, rows - least)),
    )


SELDOM: dict[str, Callable[[torch.Tensor], Any]] = {
    "lu_unpack of a part": lambda a: [
        each
        for data, pivots in ((True, False), (False, True))
        for each in torch.lu_unpack(*linalg.lu_factor(a), unpack_data=data, unpack_pivots=pivots)
    ],
    "lu_unpack of a part of the columns": lambda a: torch.lu_unpack(*linalg.lu_factor(a[..., :2])),
    "lu_solve from the right": lambda a: [
        linalg.lu_solve(*linalg.lu_factor(a), a[:, :2], left=False, adjoint=each) for each in (False, True)
    ],
    "lu_solve of one for many": lambda a: linalg.lu_solve(*linalg.lu_factor(a[0]), a),
    "lu_solve of many for one": lambda a: linalg.lu_solve(*linalg.lu_factor(a), a[0]),
    "solve of vectors": lambda a: (linalg.solve(a, a[:, 0]), linalg.solve(a[0], a[1, 0]), linalg.solve(a[0], a)),
    "triangular_solve of many": lambda a: torch.triangular_solve(a, positive(a), upper=False, unitriangular=True)[0],
    "triangular_solve, factor": lambda a: [
        each
        for transpose in (False, True)
        for each in torch.triangular_solve(a[..., :2], positive(a), upper=not transpose, transpose=transpose)
    ],
    "cholesky_solve of one for many": lambda a: torch.cholesky_solve(a, linalg.cholesky(positive(a))[0]),
    "matrix_exp of a batch": lambda a: linalg.matrix_exp(torch.stack([a[0] * 0, a[0] / 50, a[0], a[1] * 3])),
}


@pytest.mark.parametrize("name", SELDOM)
@pytest.mark.parametrize("is_complex", [False, True])
def test_of_arguments_seldom_given(name: str, is_complex: bool) -> None:
    if is_complex and name.startswith("triangular_solve"):
        pytest.skip("this one is the real one's alone")
    compared(SELDOM[name], SQUARE, is_complex)


REFLECTED: dict[str, Callable[[torch.Tensor], Any]] = {
    "qr of wide matrices": lambda a: (*linalg.qr(a.mT), *linalg.qr(a.mT, mode="complete"), linalg.qr(a.mT, mode="r")[1]),
    "ormqr": lambda a: [
        torch.ormqr(*torch.geqrf(a), other, left=left, transpose=transpose)
        for other, left, transpose in ((a, True, True), (a.mT, False, False))
    ],
    "a part of the reflections": lambda a: linalg.householder_product(torch.geqrf(a)[0], torch.geqrf(a)[1][..., :2]),
}


@pytest.mark.parametrize("name", REFLECTED)
def test_of_reflections(name: str) -> None:
    compared(REFLECTED[name], WIDE, is_complex=False)


def test_columns_that_need_no_reflection() -> None:
    """Columns that are zero below the diagonal, with a positive, a negative and no element on it."""
    a = torch.stack([torch.diag(torch.tensor([2.0, -3.0, 0.0])), torch.triu(torch.full((3, 3), -1.0)), torch.zeros(3, 3), torch.eye(3)])

    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return [*torch.geqrf(x), *linalg.qr(x)]

    check(model, onnxplain.export(model, (torch.randn(4, 3, 3, generator=GENERATOR),)), (a,))

    def parts(x: torch.Tensor) -> list[torch.Tensor]:
        return with_parts(torch.geqrf(torch.complex(x, torch.zeros_like(x))) + torch.geqrf(torch.complex(torch.zeros_like(x), x)))

    check(parts, onnxplain.export(parts, (torch.randn(4, 3, 3, generator=GENERATOR),)), (a,))


@pytest.mark.parametrize(("shape", "is_refused"), [((64, 64), False), ((65, 65), True)])
def test_the_largest_matrices(shape: tuple[int, int], is_refused: bool) -> None:
    x = torch.eye(*shape) / 8
    if is_refused:
        with pytest.raises(onnxplain.ExportFailed) as caught:
            onnxplain.export(linalg.matrix_exp, (x,))
        assert [type(each.rule) for each in caught.value.log.findings] == [DecompositionFailed]
    else:
        check(linalg.matrix_exp, onnxplain.export(linalg.matrix_exp, (x,)), (x,))


@pytest.mark.parametrize("shape", [(2, 65), (65, 2)])
def test_neither_rows_nor_columns_may_be_many(shape: tuple[int, int]) -> None:
    with pytest.raises(onnxplain.ExportFailed) as caught:
        onnxplain.export(lambda a: linalg.qr(a, mode="r")[1], (torch.ones(shape),))
    assert [type(each.rule) for each in caught.value.log.findings] == [DecompositionFailed]
