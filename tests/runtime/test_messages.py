"""What ONNX Runtime logs during a verification becomes findings; everything else on standard error stays there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from onnxscript import opset20 as op

import onnxplain
from onnxplain import process

OPTIONS = onnxplain.DiagnosticOptions(ignore=("OXP6008",))


class Sine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def _fewer(x: Any) -> Any:
    return op.Compress(op.Sin(x), op.Less(x, 0.0))


def _exported() -> list[str]:
    table = {torch.ops.aten.sin.default: _fewer}
    program = onnxplain.export(Sine(), (torch.ones(3),), custom_translation_table=table, verify=True, diagnostic_options=OPTIONS)
    return [each.rule.id for each in program.diagnostics.findings]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves only this thread to be seen: those that run the tests in several processes write nothing."""
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread()])


def test_a_warning_is_one_note_and_reaches_no_terminal(alone: None, capfd: pytest.CaptureFixture[str]) -> None:
    assert _exported() == ["OXP6007"]
    assert "onnxruntime" not in capfd.readouterr().err


def _fewer_sorted(x: Any, *_: Any) -> Any:
    return op.TopK(x, op.Shape(op.Compress(x, op.Less(x, 0.0))), largest=0)


SORTED = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            return x.sort()[1]  # told
"""
FOLDED = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x + self.weight.sin()  # told
"""


@pytest.mark.parametrize(("source", "dtype"), [(SORTED, torch.float32), (FOLDED, torch.float16)], ids=["of an output", "of a node"])
def test_a_warning_is_at_the_line_of_its_node(
    alone: None, source: str, dtype: torch.dtype, load: Callable[..., ModuleType], marked: Callable[[str], list[int]]
) -> None:
    """ONNX Runtime tells of a shape of one of two outputs, and of a node without a kernel that it would compute in advance."""
    table = {torch.ops.aten.sort.default: _fewer_sorted}
    program = onnxplain.export(
        load(source).Net().to(dtype),
        (torch.ones(3, dtype=dtype),),
        custom_translation_table=table,
        verify=True,
        diagnostic_options=OPTIONS,
    )
    (finding,) = program.diagnostics.findings
    assert (finding.rule.id, finding.location and [finding.location.line]) == ("OXP6007", marked("told"))


def test_with_other_threads_there_is_silence(capfd: pytest.CaptureFixture[str]) -> None:
    ends = threading.Event()
    other = threading.Thread(target=ends.wait)
    other.start()
    try:
        assert _exported() == []
    finally:
        ends.set()
        other.join()
    assert "onnxruntime" not in capfd.readouterr().err


def test_the_rest_is_passed_on_whatever_happens(capfd: pytest.CaptureFixture[str]) -> None:
    taken: list[str] = []

    def take(text: str) -> str:
        taken.append(text)
        return text.replace("ours\n", "")

    def interrupted() -> None:
        with process.errors_read(take):
            os.write(2, b"ours\nother\n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    os.write(2, b"after\n")
    assert taken == ["ours\nother\n"]
    assert capfd.readouterr().err == "other\nafter\n"
