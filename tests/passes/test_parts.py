"""Operators that move elements of complex tensors: on the real and on the imaginary parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from parity import check

import onnxplain


@pytest.mark.parametrize(
    "written",
    [
        lambda z: z.clone().copy_(z.real),
        lambda z: z.select_scatter(z.real[0], 0, 1),
        lambda z: z.slice_scatter(z.real[:2], 0, 1),
        lambda z: z.slice_scatter(z[:2], 0, 1),
    ],
)
def test_real_elements_have_no_imaginary_part(written: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(written(torch.complex(x, y)))

    args = torch.rand(3, 3), torch.rand(3, 3) + 1
    check(function, onnxplain.export(function, args), args)
