"""Singular values and vectors, and what is computed with them."""

from __future__ import annotations

import pytest
import torch
from marks import needs_runtime
from parity import check

import onnxplain
from onnxplain.rules import SpecializedDynamicDim

linalg = torch.linalg
GENERATOR = torch.Generator().manual_seed(3)
WIDE = torch.randn(2, 3, 5, generator=GENERATOR)
SINGULAR = torch.randint(-9, 9, (5, 2), generator=GENERATOR) / 8 @ (torch.randint(-9, 9, (2, 4), generator=GENERATOR) / 8)
"""Of rank 2 without rounding: values that are small because of rounding are found from their squares, to half of their digits."""


@needs_runtime
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("x", [WIDE, SINGULAR], ids=["wide", "singular"])
def test_vectors_are_orthonormal_and_rebuild_the_matrix(x: torch.Tensor, full: bool, dtype: torch.dtype) -> None:
    def matrix(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype) * (1 + 2j) if dtype.is_complex else x.to(dtype)

    def model(x: torch.Tensor) -> list[torch.Tensor]:
        u, values, vh = linalg.svd(matrix(x), full_matrices=full)
        return [values, *(torch.view_as_real(each) if dtype.is_complex else each for each in (u, vh))]

    values, u, vh = onnxplain.export(model, (x,))(x * 1.5)
    if dtype.is_complex:
        u, vh = torch.view_as_complex(u), torch.view_as_complex(vh)
    given = matrix(x * 1.5)
    exact = 1e-12 if dtype is torch.float64 else 1e-5
    torch.testing.assert_close(values, linalg.svdvals(given), rtol=exact, atol=exact)
    count = values.shape[-1]
    rebuilt = (u[..., :count] * values.unsqueeze(-2)) @ vh[..., :count, :]
    torch.testing.assert_close(rebuilt, given, rtol=exact, atol=exact)
    for product in (u.mH @ u, vh @ vh.mH):
        torch.testing.assert_close(product, torch.eye(product.shape[-1], dtype=dtype).expand(product.shape), rtol=exact, atol=exact)
    assert u.shape[-1] == (x.shape[-2] if full else count)
    assert vh.shape[-2] == (x.shape[-1] if full else count)


@needs_runtime
@pytest.mark.parametrize("x", [WIDE, SINGULAR], ids=["wide", "singular"])
def test_what_follows_from_singular_values(x: torch.Tensor) -> None:
    def model(x: torch.Tensor) -> list[torch.Tensor]:
        square = x @ x.mT
        return [
            *(linalg.svdvals(x), linalg.matrix_rank(x), linalg.matrix_rank(square, hermitian=True, atol=1e-3)),
            *(linalg.pinv(x, rtol=1e-4), linalg.pinv(square, hermitian=True, rtol=1e-4), linalg.matrix_norm(x, "nuc")),
            *(linalg.matrix_norm(x, 2), linalg.pinv(x, atol=torch.tensor(1e-3), rtol=torch.tensor(0.0))),
        ]

    check(model, onnxplain.export(model, (x,)), (x.flip(-1) * 1.25,), tolerance=1e-3)


@needs_runtime
def test_condition() -> None:
    check(linalg.cond, onnxplain.export(lambda x: linalg.cond(x), (WIDE,)), (WIDE * 2,), tolerance=1e-3)


def test_of_empty_matrices() -> None:
    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return [*linalg.svd(x, full_matrices=False), linalg.svdvals(x), linalg.pinv(x)]

    check(model, onnxplain.export(model, (torch.ones(2, 0, 3),)), (torch.ones(2, 0, 3),))


def test_matrices_of_a_dynamic_size_are_refused() -> None:
    with pytest.raises(onnxplain.ExportFailed) as caught:
        onnxplain.export(lambda a: linalg.svdvals(a), (torch.ones(3, 4),), dynamic_shapes=({0: "n"},))
    assert {type(each.rule) for each in caught.value.log.findings} == {SpecializedDynamicDim}
