"""The factors L and D of symmetric and Hermitian matrices, and systems solved with them."""

from __future__ import annotations

import pytest
import torch
from packaging.version import Version
from parity import check

import onnxplain

linalg = torch.linalg


def with_parts(values: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in values]


def matrices(seed: int, size: int = 5) -> torch.Tensor:
    """Eight matrices, half of them with a diagonal of zeros, which need blocks of two columns in different places."""
    made = torch.randn(8, size, size, generator=torch.Generator().manual_seed(seed))
    return torch.cat([made[:4], made[4:] * (1 - torch.eye(size))])


@pytest.mark.parametrize("kind", ["real", "complex", "hermitian"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_factors(kind: str, seed: int) -> None:
    hermitian = kind == "hermitian"

    def model(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        a = x if kind == "real" else torch.complex(x, y)
        # NOTE: only the lower triangle counts, and only the real part of the diagonal of a Hermitian matrix.
        factors, pivots, _ = linalg.ldl_factor_ex(a, hermitian=hermitian)
        again = linalg.ldl_factor(a[:4], hermitian=hermitian)
        solved = linalg.ldl_solve(factors, pivots, torch.ones_like(a[..., :2]), hermitian=hermitian)
        return with_parts([factors.tril(), pivots, again.LD.tril(), again.pivots, solved])

    x, y = matrices(seed), matrices(seed + 10)
    pivots = model(x, y)[1]
    assert 0 < int((pivots < 0).sum()) < pivots.numel(), "both kinds of blocks"
    check(model, onnxplain.export(model, (x.roll(1, 0), y)), (x, y), tolerance=1e-3)


def test_zeros_are_told() -> None:
    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return list(linalg.ldl_factor_ex(x))

    x = torch.tensor([[[0.0, 0.0], [0.0, 3.0]], [[2.0, 0.0], [0.0, 0.0]], [[0.0, 2.0], [2.0, 0.0]]])
    assert model(x)[2].tolist() == [1, 2, 0]
    check(model, onnxplain.export(model, (torch.ones(3, 2, 2),)), (x,))


@pytest.mark.parametrize("size", [0, 1])
def test_of_the_smallest_matrices(size: int) -> None:
    def model(x: torch.Tensor) -> list[torch.Tensor]:
        factors, pivots = linalg.ldl_factor(x)
        return [factors, pivots, linalg.ldl_solve(factors, pivots, x * 3)]

    x = torch.full((2, size, size), 2.0)
    check(model, onnxplain.export(model, (x,)), (x,))


@pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="this torch decides by the size of the batch")
def test_a_dynamic_batch() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        factors, pivots = linalg.ldl_factor(x)
        return linalg.ldl_solve(factors, pivots, x)

    program = onnxplain.export(model, (matrices(0),), dynamic_shapes=({0: "batch"},))
    assert program.diagnostics.findings == ()
    for x in (matrices(1)[:3], torch.cat([matrices(2), matrices(3)])):
        torch.testing.assert_close(program(x)[0], model(x), atol=1e-3, rtol=1e-3)
