"""Tests of sizes that decide nothing are no branches; those that decide something are told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import torch

import onnxplain

Load = Callable[..., ModuleType]

SOURCE = """
    import torch

    class Net(torch.nn.Module):
        on, off = True, False

        def __init__(self):
            super().__init__()
            self.causal, self.scaled, self.count = False, True, 0

        @property
        def never(self):
            self.count += 1
            return False

        def counted(self):
            self.count += 1
            return False

        def forward(self, x, mask=None, causal=False, shift=None):
            n = x.shape[0]
            {line}
            return x * 2 if chosen else x + 1
"""

IDLE = [
    "chosen = n > 3 and mask is None and causal",
    "chosen = causal and n > 3",
    "chosen = n > 3 and self.causal",
    "chosen = n > 3 and self.off",
    "chosen = n > 3 or self.scaled",
    "chosen = n > 3 or not causal",
    "chosen = len(x) > 3 and n < 9 and mask is not None",
    "chosen = (n > 3 or n < 2) and causal",
    "chosen = not (n > 3 and causal)",
    "chosen = 1 < n < 4 and self.training",
    "chosen = 3 < x.size(0) and causal is True and causal",
    "flag = n > 3\n            chosen = flag and causal",
]
DECISIVE = [
    "chosen = n > 3 and mask is None",
    "chosen = n > 3 and self.scaled",
    "chosen = n > 3 or causal",
    "chosen = n > 3 and not causal",
    "chosen = (n > 3 and causal) or n > 3",
    "chosen = n > 3 and self.never",
    "chosen = n > 3 and self.counted() and causal",
    "chosen = n > 3 and (mask := x) is None and causal",
    "chosen = (n > 3 and shift and causal) is None",
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not tell which part of a line asks")
@pytest.mark.parametrize("line", IDLE)
def test_what_another_operand_decides_depends_on_no_size(load: Load, line: str) -> None:
    model = load(SOURCE.replace("{line}", line)).Net().eval()
    program = onnxplain.export(model, (torch.rand(5, 2),), dynamic_shapes={"x": {0: "n"}})
    assert program.diagnostics.findings == ()
    for size in (1, 2, 3, 4, 9):
        x = torch.rand(size, 2)
        torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize("line", DECISIVE)
def test_what_a_size_decides_is_told(load: Load, line: str) -> None:
    model = load(SOURCE.replace("{line}", line)).Net().eval()
    program = onnxplain.export(model, (torch.rand(5, 2),), dynamic_shapes={"x": {0: "n"}})
    assert "OXP1011" in {finding.rule.id for finding in program.diagnostics.findings}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not tell which part of a line asks")
def test_a_size_from_data_that_decides_nothing(load: Load) -> None:
    model = load(SOURCE.replace("{line}", "x = x[x > 0]\n            chosen = x.shape[0] > 3 and self.causal")).Net().eval()
    program = onnxplain.export(model, (torch.rand(5, 2),))
    x = torch.rand(5, 2) - 0.9
    torch.testing.assert_close(program(x)[0], model(x))
