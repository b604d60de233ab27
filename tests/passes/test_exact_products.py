"""Products of whole numbers that a float cannot hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxplain

PRODUCTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rows": lambda x: x.prod(1),
    "rows kept": lambda x: x.prod(-1, keepdim=True),
    "all": lambda x: x.prod(),
    "some, perhaps none": lambda x: x[:, 1:].prod(1),
    "narrow": lambda x: x.to(torch.int32).prod(1),
    "floats to whole numbers": lambda x: x.float().prod(1, dtype=torch.int64),
    "a number": lambda x: x[0, 0].prod(),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_wraps_as_in_pytorch(name: str) -> None:
    model = PRODUCTS[name]
    program = onnxplain.export(model, (torch.full((3, 20), 7),), dynamic_shapes=({1: "length"},))
    for length in (1, 20, 21, 40):
        x = torch.full((3, length), 7) + torch.arange(length)
        assert torch.equal(program(x)[0], model(x))
