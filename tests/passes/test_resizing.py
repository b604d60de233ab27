"""Resizing to dynamic sizes."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize(
    "options",
    [{"antialias": True}, {"align_corners": True}, {"antialias": True, "mode": "bicubic"}, {"align_corners": True, "mode": "bicubic"}],
)
def test_to_sizes_from_data(options: dict[str, Any]) -> None:
    def model(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, size=sizes.tolist(), **{"mode": "bilinear", **options})

    x = torch.randn(1, 2, 4, 4)
    program = onnxplain.export(model, (x, torch.tensor([3, 5])))
    # NOTE: PyTorch's own resizing with antialiasing to one column is wrong if the number of rows changes (2.13).
    for sizes in ([2, 2], [7, 3], [1, 6], [4, 1]):
        torch.testing.assert_close(program(x, torch.tensor(sizes))[0], model(x, torch.tensor(sizes)), rtol=1e-5, atol=1e-5)
