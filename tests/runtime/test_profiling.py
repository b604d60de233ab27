"""The profile of a run, by operator, by line and by module."""

from __future__ import annotations

import csv
import io
import sys
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxplain

NET = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(32, 64)

        def forward(self, x):
            y = self.head(x)  # head
            for _ in range(3):
                y = torch.cat([y, y.cos()])  # grow
            return y
"""


def test_operators_lines_and_modules(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    x = torch.randn(16, 32)
    profile = onnxplain.export(load(NET).Net(), (x,), dynamic_shapes={"x": {0: "rows"}}).profile(x)
    calls = {row.name: (row.calls, row.self_bytes) for row in profile.operators}
    row = 16 * 64 * 4
    assert calls == {"Gemm": (1, row), "Cos": (3, 7 * row), "Concat": (3, 14 * row)}
    lines = {row.name.rpartition(":")[2]: row.calls for row in profile.lines}
    assert lines == {str(marked("head")[0]): 1, str(marked("grow")[0]): 6}
    assert {row.name: row.calls for row in profile.modules}["head"] == 1
    for rows in profile.tables().values():
        assert sum(row.self_seconds for row in rows) == pytest.approx(profile.seconds)
        assert [row.self_seconds for row in rows] == sorted((row.self_seconds for row in rows), reverse=True)
    assert profile.runs == 3


def test_a_fused_operator_has_the_line_of_its_last_part(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    program = load(
        """
        import torch

        def forward(x):
            y = torch.nn.functional.conv2d(x, torch.ones(16, 3, 3, 3))
            return y.relu()  # relu
        """
    )
    x = torch.randn(1, 3, 8, 8)
    profile = onnxplain.export(program.forward, (x,)).profile(x)
    assert any(row.name.endswith(f":{marked('relu')[0]}") for row in profile.lines)


def test_the_time_of_a_loop_is_without_its_body() -> None:
    x, y = torch.randn(64, 523), torch.randn(64, 523)
    program = onnxplain.export(lambda x, y: (x[:, :, None] - y[:, None, :]).abs().sum(0), (x, y), optimize="memory")
    profile = program.profile(x, y)
    times = {row.name: row for row in profile.operators}
    assert times["Abs"].calls == times["Sub"].calls > 10
    assert times["Scan"].calls == 1
    assert times["Scan"].self_seconds < profile.seconds / 2


def test_a_profile_is_csv_and_a_dataframe(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(4)
    profile = onnxplain.export(lambda x: x.cos(), (x,)).profile(x)
    rows = list(csv.DictReader(io.StringIO(profile.to_csv())))
    assert [(row["by"], row["calls"], row["self_bytes"]) for row in rows] == [(by, "1.0", "16") for by in ("operator", "line", "module")]
    made: list[Any] = []
    stand_in = types.SimpleNamespace(DataFrame=lambda rows, columns: made.append((rows, columns)))
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    profile.to_dataframe()
    assert made[0][1] == list(rows[0])
    assert len(made[0][0]) == 3
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(onnxplain.OnnxExporterError):
        profile.to_dataframe()


def test_inputs_are_checked() -> None:
    program = onnxplain.export(lambda x: x.cos(), (torch.randn(4),))
    with pytest.raises(onnxplain.InvalidArgument):
        program.profile(torch.randn(5))
