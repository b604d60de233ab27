"""Branches that have another way for certain sizes: the way for all others is exported if it is right for these as well."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch
from marks import needs_columns

import onnxplain

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

SOURCE = """
    import torch
    import torch.nn.functional as F


    def positions(h, w, step=1.0):
        rows, columns = torch.arange(h) * step, torch.arange(w) * step
        return torch.sin(rows)[:, None] + torch.cos(columns)[None]


    class Net(torch.nn.Module):
        height, width, flag = 4, 6, True

        def __init__(self):
            super().__init__()
            self.register_buffer("table", positions(4, 6))
            self.weight = torch.nn.Parameter(torch.randn(4, 6))

        def resized(self, h, w):
            return F.interpolate(self.weight[None, None], size=(h, w), mode="bilinear", align_corners=False)[0, 0]

        def forward(self, x):
            full = x.shape[-2]
            h, w = full // 2, x.shape[-1] // 2
            x = F.avg_pool2d(x, 2)
            {}
            return x * 2
"""

RIGHT = {
    "computed for others": """
        if h != self.height or w != self.width:  # HERE
            table = positions(h, w)
        else:
            table = self.table
        x = x + table""",
    "kept for the same": """
        if h == self.height and w == self.width:  # HERE
            table = self.weight
        else:
            table = self.resized(h, w)
        x = x + table""",
    "tuples": """
        table = self.weight
        if tuple(x.shape[-2:]) != (self.height, self.width):  # HERE
            table = self.resized(h, w)
        x = x + table""",
    "an expression": """
        x = x + (self.weight if (h, w) == tuple(self.weight.shape) else self.resized(h, w))  # HERE""",
    "a flag beside": """
        table = self.weight
        if self.flag and (self.height != h or self.width != w):  # HERE
            table = self.resized(h, w)
        x = x + table""",
    "an early return": """
        if h == self.height and w == self.width:  # HERE
            return (x + self.table) * 2
        x = x + positions(h, w)""",
    "a product": """
        if h * w == self.height * self.width and h == self.height:  # HERE
            table = self.weight
        else:
            table = self.resized(h, w)
        x = x + table""",
}
WRONG = {
    "another result": """
        if h != self.height or w != self.width:
            x = x + positions(h, w)
        else:
            x = x + self.weight""",
    "only where both differ": """
        if h != self.height and w != self.width:
            x = x + positions(h, w)
        else:
            x = x + x.sum()""",
    "other sizes of the same quotient": """
        if h == self.height:
            x = x + self.table.sum()
        else:
            x = x + self.table.sum() + (full - 2 * h)""",
    "other sizes of the same product": """
        if h * w == self.height * self.width:
            x = x + self.weight.pow(2).sum()
        else:
            x = x + self.resized(h, w).pow(2).sum()""",
    "an example that is not one of them": """
        if h != self.height or w != 5:
            x = x + self.table.sum()
        else:
            x = x + 100""",
    "certain sizes that differ": """
        for height, part in ((8, 1), (2, 4)):
            if full // part == height:
                x = x + part
            else:
                x = x + part + (full - 8) * 0.5""",
    "a state": """
        if h != self.height or w != self.width:
            self.kept = positions(h, w)
        x = x + self.table.sum()""",
}


def loaded(load: Load, body: str) -> torch.nn.Module:
    lines = [line[8:] for line in body.strip("\n").splitlines()]
    torch.manual_seed(0)
    model: torch.nn.Module = load(SOURCE.format("\n".join(lines).strip().replace("\n", "\n            "))).Net()
    return model.eval()


def exported(model: torch.nn.Module) -> onnxplain.ONNXProgram:
    return onnxplain.export(model, (torch.randn(2, 3, 8, 12),), dynamic_shapes=({0: "n", 2: "h", 3: "w"},))


@needs_columns
@pytest.mark.parametrize("body", RIGHT)
def test_the_way_for_all_other_sizes_is_right_for_the_example(body: str, load: Load, marked: Marked) -> None:
    model = loaded(load, RIGHT[body])
    program = exported(model)
    assert {(each.rule.id, each.location.line) for each in program.diagnostics.findings} == {("OXP1037", marked("HERE")[0])}
    for size in ((2, 3, 8, 12), (1, 3, 8, 12), (3, 3, 9, 13), (2, 3, 16, 6), (2, 3, 8, 20), (2, 3, 5, 12), (2, 3, 4, 24)):
        x = torch.randn(size)
        with torch.no_grad():
            torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("body", WRONG)
def test_another_way_for_certain_sizes_is_told(body: str, load: Load) -> None:
    model = loaded(load, WRONG[body])
    try:
        findings = exported(model).diagnostics.findings
    except onnxplain.ExportFailed as failed:
        findings = failed.findings
    ids = {each.rule.id for each in findings}
    assert ids & {"OXP1003", "OXP1011"}
    assert "OXP1037" not in ids


RESIZED = """
    import math
    import torch
    import torch.nn.functional as F


    class Net(torch.nn.Module):
        def forward(self, x):
            height, width = x.shape[-2:]
            h, w = math.ceil(height / 2) * 2, math.ceil(width / 2) * 2
            resized = False
            if h != height or w != width:  # HERE
                x = F.interpolate(x, size=(h, w), mode="bilinear", align_corners=False)
                resized = True
            x = x.reshape(x.shape[0], 3, h // 2, 2, w // 2, 2).softmax(-1).reshape(x.shape[0], 3, h, w)
            if resized:
                x = {}
            return x * 2
"""


@needs_columns
def test_a_tensor_that_has_the_size_may_be_resized(load: Load) -> None:
    model = load(RESIZED.format("F.interpolate(x, size=(height, width), mode='bilinear', align_corners=False)")).Net()
    program = exported(model)
    assert program.diagnostics.findings == ()
    for size in ((2, 3, 8, 12), (1, 3, 7, 12), (3, 3, 9, 13), (2, 3, 16, 6), (2, 3, 1, 3)):
        x = torch.randn(size)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


def test_what_else_a_resized_tensor_leads_to_is_told(load: Load) -> None:
    ids = {each.rule.id for each in exported(load(RESIZED.format("x + 1")).Net()).diagnostics.findings}
    assert "OXP1011" in ids
    assert "OXP1037" not in ids
