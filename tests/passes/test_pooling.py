"""Adaptive pooling with windows of several sizes: as in eager PyTorch, with windows no larger than the largest of them."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

import onnxplain


@pytest.mark.parametrize(("height", "width", "rows", "columns"), [(7, 9, 5, 3), (4, 8, 6, 8), (5, 7, 1, 2), (10, 3, 4, 5)])
def test_windows_of_several_sizes(height: int, width: int, rows: int, columns: int) -> None:
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = functional.adaptive_max_pool2d(x, (rows, columns), return_indices=True)
        return values, places

    # NOTE: equal numbers, of which the first counts, and windows of infinities.
    x = torch.randint(-2, 3, (2, 3, height, width)).float()
    program = onnxplain.export(forward, (torch.randn(2, 3, height, width),))
    for given in (x, torch.randn_like(x), torch.full_like(x, -math.inf)):
        for got, want in zip(program(given), forward(given), strict=True):
            torch.testing.assert_close(got, want)
    widest = [
        max(math.ceil((i + 1) * size / count) - math.floor(i * size / count) for i in range(count))
        for size, count in ((height, rows), (width, columns))
    ]
    made = [value.shape for node in program.model.graph for value in node.outputs if value.shape is not None and value.shape.is_static()]
    shapes = [[int(size) for size in shape] for shape in made]
    assert max(map(math.prod, shapes)) <= 2 * 3 * rows * widest[0] * max(width, columns * widest[1])
    assert [2, 3, rows, columns, widest[0] * widest[1]] in shapes
