"""Pooling that ONNX cannot express is a finding, and no model with other results."""

from __future__ import annotations

import pytest
import torch
from marks import needs_runtime

import onnxplain


@needs_runtime
@pytest.mark.parametrize("divisor", [None, 3])
@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("ceil_mode", [True, False])
def test_average_pooling_of_fixed_sizes(ceil_mode: bool, count_include_pad: bool, divisor: int | None) -> None:
    settings = [
        ((kernel, other), (stride, 3), (padding, min(1, other // 2)))
        for kernel, other in ((2, 3), (3, 2), (4, 1))
        for stride in (1, 2, 3)
        for padding in range(kernel // 2 + 1)
    ]

    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.nn.functional.avg_pool2d(x, *each, ceil_mode, count_include_pad, divisor) for each in settings]

    for sizes in ((2, 7, 6), (1, 2, 8, 9)):
        x = torch.randn(sizes)
        for got, want in zip(onnxplain.export(model, (x,))(x), model(x), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_average_pooling_that_rounds_up_one_of_two_sizes() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(x, (2, 3), ceil_mode=True)

    program = onnxplain.export(model, (torch.ones(1, 2, 7, 8),), dynamic_shapes=({2: "height"},))
    for height in (7, 4, 9):
        x = torch.randn(1, 2, height, 8)
        torch.testing.assert_close(program(x)[0], model(x))
