"""Pooling with `ceil_mode` limits no dynamic size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import onnxplain

POOLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "windows that end within": lambda x: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "windows that begin within": lambda x: functional.max_pool2d(x, 2, 2, 1, ceil_mode=True),
    "means": lambda x: functional.avg_pool2d(x, 2, 2, 1, ceil_mode=True),
    "distances": lambda x: functional.max_pool1d(x.flatten(0, 1), 2, 3, 1, dilation=2, ceil_mode=True),
}


@pytest.mark.parametrize("name", POOLS)
def test_every_size(name: str) -> None:
    function = POOLS[name]

    def model(x: torch.Tensor) -> torch.Tensor:
        pooled = function(x)
        return pooled.reshape(pooled.shape[0], -1)

    program = onnxplain.export(model, (torch.randn(1, 2, 9, 8),), dynamic_shapes=({0: "batch", 2: "height", 3: "width"},))
    assert not [finding for finding in program.diagnostics.findings if finding.rule.id != "OXP1025"]
    for height, width in ((9, 8), (3, 4), (4, 3), (5, 7), (10, 11)):
        x = torch.randn(2, 2, height, width)
        torch.testing.assert_close(program(x)[0], model(x))
