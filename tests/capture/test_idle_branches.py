"""Branches that change nothing for the sizes that do not take them are right for all sizes; all others are told."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import needs_columns
from packaging.version import Version
from torch.export import Dim

import onnxplain

Load = Callable[..., ModuleType]

SOURCE = """
    import torch
    import torch.nn.functional as F

    class Net(torch.nn.Module):
        window = 8
        shifted, plain = True, False

        def forward(self, x):
            h, w = x.shape[-2:]
            {}
"""
LENGTH = "cut or padded to a length"
IDLE = {
    "padded and cut": """
        ph, pw = (8 - h % 8) % 8, (8 - w % 8) % 8
        if ph or pw:
            x = F.pad(x, (0, pw, 0, ph))
        x = F.interpolate(F.avg_pool2d(x, 8), scale_factor=8)
        if ph > 0 or pw > 0:
            x = x[..., :h, :w]
        return x""",
    "a test in a variable": """
        pads = (0, -w % self.window, 0, -h % self.window)
        x = F.interpolate(F.avg_pool2d(F.pad(x, pads), self.window), scale_factor=self.window)
        was_padded = pads[1] > 0 or pads[3] > 0
        if was_padded:
            x = x[:, :, :h, :w].contiguous()
        return x""",
    "amounts in a variable": """
        should_pad = (h % 2 == 1) or (w % 2 == 1)
        if should_pad:
            pad_values = (0, w % 2, 0, h % 2)
            x = F.pad(x, pad_values)
        return F.avg_pool2d(x, 2)""",
    "an expression": """
        missing = -w % 5
        y = F.pad(x, (0, missing)) if missing > 0 else x
        return y.view(*y.shape[:-1], -1, 5).sum(-1)""",
    "another variable": """
        missing = -x.size(-1) % 3
        if missing != 0 and self.shifted:
            y = torch.nn.functional.pad(x, pad=(0, missing), value=0.0)
        else:
            y = x
        return y.view(*y.shape[:-1], -1, 3).sum(-1)""",
    "cut where larger": """
        y = F.interpolate(F.avg_pool2d(x, 4, ceil_mode=True), scale_factor=4)
        if y.shape[-2] > h or y.shape[-1] > w:
            y = y[:, :, 0:h, 0:w]
        return y + x""",
    "contiguous": """
        if w >= 20:
            x = x.contiguous()
        return x * 2""",
    "cut to the most that it takes": """
        if w > self.window:
            x = x[..., : self.window]
        return x * torch.arange(8.0)[: x.shape[-1]]""",
    LENGTH: """
        if x.shape[-1] > 20:
            x = x[..., :20]
        if x.shape[-1] < 20:
            x = F.pad(x, (0, 20 - x.shape[-1]))
        return x.view(-1, 20)""",
    "a window more where the sizes fit": """
        if w % self.window != 0:
            pads = (0, self.window - w % self.window)
            x = F.pad(x, pads)
        if h % self.window:
            pads = (0, 0, 0, self.window - h % self.window)
            x = F.pad(x, pads)
        return F.avg_pool2d(x, 8)""",
    "two at once": """
        rows, columns = h % 2, w % 2
        if rows > 0 or columns > 0:
            x = F.pad(x, (0, columns))
            x = F.pad(x, (0, 0, 0, rows), "constant", 1)
        return F.avg_pool2d(x, 2)""",
}
OTHERS = {
    "more than a window": """
        if w % 4 != 0:
            x = F.pad(x, (0, 5 - w % 4))
        return x""",
    "another window": """
        if w % 4 != 0:
            x = F.pad(x, (0, 8 - w % 8))
        return x""",
    "both or none": """
        if w % 8 != 0 or h % 8 != 0:
            x = F.pad(x, (0, 8 - w % 8, 0, 8 - h % 8))
        return x""",
    "padded by a constant": """
        if w % 4 == 1:
            x = F.pad(x, (0, 3))
        return x""",
    "a cut of the rest": """
        if w % 2 == 1:
            x = x[..., :16]
        return x""",
    "a cut of a list": """
        parts = [x, x + 1]
        if w % 4 != 0:
            parts = parts[:1]
        return torch.stack(parts).sum(0)""",
    "a start behind 0": """
        missing = -w % 4
        if missing > 0:
            x = x[..., 1:w]
        return x""",
    "a test in a variable": """
        odd = w % 4 == 1 or h > 9
        if odd:
            x = F.pad(x, (0, 3))
        return x""",
    "read afterwards": """
        missing = -w % 4
        scale = 2
        if missing > 0:
            scale = missing + 3
            x = F.pad(x, (0, missing))
        return x * scale""",
    "another way": """
        missing = -w % 4
        if missing > 0:
            y = F.pad(x, (0, missing))
        else:
            y = x + 1
        return y""",
    "another name": """
        missing = -w % 4
        y = x + 1
        if missing > 0:
            y = F.pad(x, (0, missing))
        return y""",
    "changed afterwards": """
        missing = -w % 4
        should = missing > 0 or h > 99
        missing = missing + 1
        if should:
            x = F.pad(x, (0, missing))
        return x""",
    "the variable read": """
        should = w % 4 == 1 or h > 99
        if should:
            x = F.pad(x, (0, w % 4))
        return x * 2 if should else x""",
    "padded by what is there": """
        missing = -w % 4
        if missing > 0:
            x = F.pad(x, (0, missing, 0, 0), mode="replicate")
        return x""",
    "called": """
        missing = -w % 4
        if missing > 0:
            x = F.pad(x, (0, missing)).relu()
        return x""",
}
SIZES = ((16, 24), (13, 20), (8, 8), (9, 17), (23, 16), (8, 9), (5, 8))
SLICES = pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="torch 2.11 takes the sizes of slices for sizes from data")


def exported(load: Load, body: str, size: tuple[int, int], shapes: Any) -> tuple[torch.nn.Module, onnxplain.ONNXProgram]:
    model = load(SOURCE.format(body.replace("\n", "\n    ").strip())).Net()
    inputs, dims = (torch.rand(1, 3, *size),), {2: shapes, 3: shapes and "w"}
    return model, onnxplain.export(model, inputs, dynamic_shapes=(dims,), strategies=("non-strict",))


def wrong_sizes(model: torch.nn.Module, program: onnxplain.ONNXProgram) -> list[tuple[int, int]]:
    def differs(x: torch.Tensor) -> bool:
        wanted, (found,) = model(x), program(x)
        return found.shape != wanted.shape or not torch.allclose(found, wanted, atol=1e-6)

    return [size for size in SIZES if differs(torch.rand(1, 3, *size))]


@needs_columns
@pytest.mark.parametrize("size", SIZES[:2])
@pytest.mark.parametrize("body", [pytest.param(body, id=name, marks=[SLICES] * (name == LENGTH)) for name, body in IDLE.items()])
def test_a_branch_that_changes_nothing_for_other_sizes_is_right_for_all(
    load: Load, body: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    captures, export = [], torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **kwargs: captures.append(1) or export(*args, **kwargs))
    model, program = exported(load, body, size, "h")
    assert len(captures) == 1
    assert program.diagnostics.findings == ()
    assert wrong_sizes(model, program) == []


@pytest.mark.parametrize("size", [(8, 24), (8, 21), (8, 18)])
@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_a_branch_that_changes_something_is_told(load: Load, body: str, size: tuple[int, int]) -> None:
    model, program = exported(load, body, size, Dim("h", min=2))
    told = "OXP1011" in {finding.rule.id for finding in program.diagnostics.findings}
    assert told or wrong_sizes(model, program) == []
    x = torch.rand(1, 3, *size)
    torch.testing.assert_close(program(x)[0], model(x))


def test_a_branch_of_fixed_sizes_is_that_of_eager_mode(load: Load) -> None:
    _, program = exported(load, IDLE["padded and cut"], (16, 24), None)
    assert "Pad" not in {node.op_type for node in program.model.graph}
