"""Tests of sizes that decide nothing, or that the code answers for traces, are no branches; those that decide something are told."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from marks import needs_columns

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

RESIZED = """
    import torch
    import torch.nn.functional as F
    from torch.jit import is_tracing

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = torch.nn.Parameter(torch.rand(1, 3, 4, 4))

        def resized(self, h, w):
            return F.interpolate(self.positions, size=(h, w), mode="bicubic", align_corners=False)

        def forward(self, x):
            h, w = x.shape[-2:]
            {line}
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
BOTH = """\
                return x + {}
            return x + {}"""
FIXED_FIRST, RESIZED_FIRST = BOTH.format("self.positions", "self.resized(h, w)"), BOTH.format("self.resized(h, w)", "self.positions")
FOR_TRACES = [
    f"if not torch.jit.is_tracing() and h == 4 and w == 4:\n{FIXED_FIRST}",
    f"if h == 4 and h * w == 16 and not is_tracing():\n{FIXED_FIRST}",
    f"if torch.jit.is_tracing() or h != 4 or w != 4:\n{RESIZED_FIRST}",
    f"if x.dim() == 4 and (torch.jit.is_tracing() or h != 4 or w != 4):\n{RESIZED_FIRST}",
    "return x + (self.resized(h, w) if is_tracing() or h != 4 or w != 4 else self.positions)",
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


@needs_columns
@pytest.mark.parametrize("line", IDLE)
def test_what_another_operand_decides_depends_on_no_size(load: Load, line: str) -> None:
    model = load(SOURCE.replace("{line}", line)).Net().eval()
    program = onnxplain.export(model, (torch.rand(5, 2),), dynamic_shapes={"x": {0: "n"}})
    assert program.diagnostics.findings == ()
    for size in (1, 2, 3, 4, 9):
        x = torch.rand(size, 2)
        torch.testing.assert_close(program(x)[0], model(x))


@needs_columns
@pytest.mark.parametrize("line", FOR_TRACES)
def test_what_the_code_answers_for_traces_depends_on_no_size(load: Load, line: str) -> None:
    model = load(RESIZED.replace("{line}", line)).Net().eval()
    program = onnxplain.export(model, (torch.rand(2, 3, 4, 4),), dynamic_shapes={"x": {2: "h", 3: "w"}}, verify=True)
    # NOTE: the note says that the code goes another way in an export.
    assert {finding.rule.id for finding in program.diagnostics.findings} <= {"OXP1021"}
    for height, width in ((4, 4), (4, 7), (9, 4), (5, 6)):
        x = torch.rand(2, 3, height, width)
        torch.testing.assert_close(program(x)[0], model(x))


def test_a_fixed_size_takes_the_way_of_eager_mode(load: Load) -> None:
    model = load(RESIZED.replace("{line}", FOR_TRACES[0])).Net().eval()
    program = onnxplain.export(model, (torch.rand(2, 3, 4, 4),))
    assert [node.op_type for node in program.model.graph] == ["Add"]


@pytest.mark.parametrize(
    "line",
    [
        "same = not torch.jit.is_tracing() and h > 3\n            return x + 1 if same else x",
        "if not torch.jit.is_tracing() or h > 3:\n                return x + 1\n            return x",
        "if torch.jit.is_scripting() or h > 3:\n                return x + 1\n            return x",
    ],
)
def test_other_questions_about_traces_are_branches(load: Load, line: str) -> None:
    model = load(RESIZED.replace("{line}", line)).Net().eval()
    program = onnxplain.export(model, (torch.rand(2, 3, 4, 4),), dynamic_shapes={"x": {2: torch.export.Dim("h"), 3: "w"}})
    x = torch.rand(2, 3, 5, 5)
    told = "OXP1011" in {finding.rule.id for finding in program.diagnostics.findings}
    assert told or torch.equal(program(x)[0], model(x))


@pytest.mark.parametrize("line", DECISIVE)
def test_what_a_size_decides_is_told(load: Load, line: str) -> None:
    model = load(SOURCE.replace("{line}", line)).Net().eval()
    program = onnxplain.export(model, (torch.rand(5, 2),), dynamic_shapes={"x": {0: "n"}})
    assert "OXP1011" in {finding.rule.id for finding in program.diagnostics.findings}


@needs_columns
def test_a_size_from_data_that_decides_nothing(load: Load) -> None:
    model = load(SOURCE.replace("{line}", "x = x[x > 0]\n            chosen = x.shape[0] > 3 and self.causal")).Net().eval()
    program = onnxplain.export(model, (torch.rand(5, 2),))
    x = torch.rand(5, 2) - 0.9
    torch.testing.assert_close(program(x)[0], model(x))
