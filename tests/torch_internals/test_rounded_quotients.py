"""Sizes that are brought to a multiple are right for all sizes, and their formulas do not grow with the depth of a network."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import onnxplain

Lacking = Callable[[int, int], int]


class Numbers(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        rounded = [math.ceil(n / 3), math.floor(n / 3), np.ceil(n / 4), math.ceil((n - 20) / 3), math.floor((n - 20) / 3)]
        lacking = [-n % 5, (5 - n % 5) % 5, (10 - n % 5) % 5, (3 - (n - 9) % 3) % 3, -(n - 9) % 4]
        others = [(7 - n % 5) % 5, (0 - (0 - n)) % 3, (5 - n % 3) % 5, math.ceil(n / 2) / 2, n / 2 % 3, 5 - n % 5]
        limits = [max(-n % 4, 0), max(0, 2 * math.ceil(n / 2) - n - 1), max(2 * math.ceil(n / 2) - n - 2, 0), max(-n % 4 - 2, 0)]
        numbers = [*rounded, *lacking, *others, *limits, min(n, 7 * ((n + 6) // 7))]
        return torch.stack([x.new_full((), float(each)) for each in numbers])


def test_numbers_are_those_of_python() -> None:
    program = onnxplain.export(Numbers(), (torch.zeros(10),), dynamic_shapes={"x": {0: "n"}})
    assert program.diagnostics.findings == ()
    for size in range(1, 64):
        x = torch.zeros(size)
        assert torch.equal(program(x)[0], Numbers()(x)), size


LACKING: dict[str, Lacking] = {
    "rounded up": lambda n, step: math.ceil(n / step) * step - n,
    "not negative": lambda n, step: max((math.ceil(n / step) - 1) * step + 1 + step - 1 - n, 0),
    "remainder": lambda n, step: (step - n % step) % step,
    "negative": lambda n, step: -n % step,
    "quotient": lambda n, step: (n + step - 1) // step * step - n,
}


class Windows(torch.nn.Module):
    """Halves an image, padded where its sizes are odd, and works on padded windows of it, again and again."""

    def __init__(self, lacking: Lacking, depth: int) -> None:
        super().__init__()
        self.lacking = lacking
        self.halves = torch.nn.ModuleList(torch.nn.Conv2d(2, 2, 2, stride=2) for _ in range(depth))

    def padded(self, x: torch.Tensor, step: int) -> torch.Tensor:
        return F.pad(x, (0, self.lacking(x.shape[-1], step), 0, self.lacking(x.shape[-2], step)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for half in self.halves:
            x = half(self.padded(x, 2))
            height, width = x.shape[-2:]
            windows = self.padded(x, 3).unfold(2, 3, 3).unfold(3, 3, 3)
            means = windows.mean((-1, -2)).repeat_interleave(3, 2).repeat_interleave(3, 3)
            x = x + means[:, :, :height, :width]
        return x


@pytest.mark.parametrize("form", LACKING)
def test_formulas_of_padded_sizes_do_not_grow(form: str) -> None:
    model = Windows(LACKING[form], 5).eval()
    program = onnxplain.export(model, (torch.rand(1, 2, 200, 130),), dynamic_shapes={"x": {2: "height", 3: "width"}})
    assert program.diagnostics.findings == ()
    # NOTE: without quotients of ints, each of the five steps doubles or triples the formula.
    assert len(str(program.model.graph.outputs[0].shape)) < 200
    for height, width in ((200, 130), (131, 97), (64, 33), (250, 255)):
        x = torch.rand(1, 2, height, width)
        torch.testing.assert_close(program(x)[0], model(x), atol=1e-5, rtol=1e-4)


def test_a_multiple_is_told_as_a_user_writes_it() -> None:
    class Whole(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            lacking = (4 - x.shape[0] % 4) % 4
            return x + 1 if lacking > 0 else x - 1

    program = onnxplain.export(Whole(), (torch.rand(8),), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    (finding,) = program.diagnostics.findings
    assert finding.rule.id == "OXP1011"
    assert vars(finding.rule)["constraint"] == "n % 4 == 0"
