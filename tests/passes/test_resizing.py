"""Resizing to dynamic sizes."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import onnxplain


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("mode", "rank"), [("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3)])
def test_to_a_dynamic_size_that_is_1(mode: str, rank: int, dtype: torch.dtype) -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, size=(y.shape[0],) * rank, mode=mode, align_corners=True)

    program = onnxplain.export(model, (torch.randn(1, 2, *[4] * rank).to(dtype), torch.zeros(3)), dynamic_shapes=({}, {0: "size"}))
    for size in (1, 2, 5):
        inputs = torch.randn(1, 2, *[4] * rank).to(dtype), torch.zeros(size)
        torch.testing.assert_close(program(*inputs)[0], model(*inputs), rtol=1e-5, atol=1e-5)
