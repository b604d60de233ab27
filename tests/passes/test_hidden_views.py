"""Writes to views that an operator makes without saying so: the exported model computes what eager PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import onnxplain

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "at least three dims": lambda x: torch.atleast_3d(x),
    "at least two dims, of a list": lambda x: torch.atleast_2d(x, x[0])[0],
    "broadcast": lambda x: torch.broadcast_tensors(x, x)[0],
    "diagonal by einsum": lambda x: torch.einsum("ii->i", x),
    "dropout in evaluation": lambda x: F.dropout(x, 0.5, False),
    "einsum": lambda x: torch.einsum("ij->ji", x),
    "grid": lambda x: torch.meshgrid(x[0], indexing="ij")[0],
    "parts": lambda x: x.unsafe_chunk(2)[0],
    "product of one": lambda x: torch.cartesian_prod(x[0]),
    "sum to its own size": lambda x: x.sum_to_size(x.shape),
    "type of another": lambda x: x[1:].type_as(x),
    "windows": lambda x: x.unfold(0, 2, 2),
}
COMPLEX: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "conjugate's imaginary part": lambda z: z.conj().imag,
    "imaginary part": lambda z: z.imag,
    "parts": torch.view_as_real,
    "real part of a row": lambda z: z[0].real,
    "transposed": lambda z: z.mH,
}


def to_view(view: Callable[..., Any], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = view(x)
    y += 1
    return x * 2, y * 3


def to_base(view: Callable[..., Any], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = view(x)
    x += 1
    return x * 2, y * 3


def to_both(view: Callable[..., Any], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    rows = x[1:]
    y = view(x)
    rows.mul_(2)
    y += 1
    return x * 2, y * 3, rows * 4


def to_view_of_new_memory(view: Callable[..., Any], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return to_view(view, x * 1)


@pytest.mark.parametrize("write", [to_view, to_base, to_both, to_view_of_new_memory])
@pytest.mark.parametrize("name", VIEWS)
def test_equals_eager(name: str, write: Callable[..., Any]) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return write(VIEWS[name], x)

    x = torch.arange(16.0).reshape(4, 4) / 8
    program = onnxplain.export(Net(), (x.clone(),))
    torch.testing.assert_close(tuple(program(x.clone())), Net()(x.clone()))
    writes_input = write is not to_view_of_new_memory
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP2003"] * writes_input


@pytest.mark.parametrize("write", [to_view, to_base, to_both])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_and_their_parts_share_memory(name: str, write: Callable[..., Any]) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            results = write(COMPLEX[name], torch.complex(x, x + 1))
            return tuple(torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in results)

    x = torch.arange(16.0).reshape(4, 4) / 8
    program = onnxplain.export(Net(), (x,))
    torch.testing.assert_close(tuple(program(x)), Net()(x))
