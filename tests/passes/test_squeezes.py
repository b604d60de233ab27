"""Squeezes of sizes that a model has computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from parity import check
from torch.export import Dim

import onnxplain

SQUEEZES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all": lambda x: x.squeeze(),
    "dim": lambda x: x.squeeze(1),
    "negative dim": lambda x: x.squeeze(-2),
    "dims": lambda x: x.squeeze((0, 1)),
}


@pytest.mark.parametrize("name", SQUEEZES)
def test_a_computed_size_that_is_1_is_dropped(name: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        count = min(y.shape[0], 4)
        torch._check(count == 1)
        return SQUEEZES[name](x[None].narrow(1, 0, count)) * 2

    x, dynamic = torch.randn(5, 3), {0: Dim.DYNAMIC}
    program = onnxplain.export(function, (x, torch.ones(1)), dynamic_shapes=(dynamic, dynamic))
    check(function, program, (torch.randn(6, 3), torch.ones(1)))
    with pytest.raises(Exception, match="Reshape"):
        program(x, torch.ones(2))


@pytest.mark.parametrize("name", SQUEEZES)
def test_fixed_and_other_sizes_stay_a_squeeze(name: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return SQUEEZES[name](x[None, :, :1]) * 2

    program = onnxplain.export(function, (torch.randn(5, 3),), dynamic_shapes=({0: "rows"},))
    check(function, program, (torch.randn(6, 3),))
