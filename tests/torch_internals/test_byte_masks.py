"""Masks of bytes, as older models have them, choose as masks of truths do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import onnxplain

pytestmark = pytest.mark.filterwarnings("ignore:(where received a uint8|indexing with dtype torch.uint8)")


def mask(x: Tensor) -> Tensor:
    return (x > 0).byte()


def written(x: Tensor) -> Tensor:
    y = x.clone()
    y[mask(x)] = -x[mask(x)]
    return y


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "where": lambda x: torch.where(mask(x), x, -x),
    "method": lambda x: x.where(mask(x), x.new_zeros(())),
    "places": lambda x: torch.stack(torch.where(mask(x))),
    "read": lambda x: x[mask(x)],
    "read beside a number": lambda x: x[0, mask(x)[0]],
    "written": written,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mask_of_bytes(name: str) -> None:
    program = onnxplain.export(FUNCTIONS[name], (torch.randn(3, 4),), dynamic_shapes=({0: "rows", 1: "columns"},))
    assert program.diagnostics.findings == ()
    for sizes in ((3, 4), (2, 9)):
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], FUNCTIONS[name](x))
