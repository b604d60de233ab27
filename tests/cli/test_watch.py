"""`onnxplain export --watch`: a change of a source leads to another export, until Ctrl-C."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

import onnxplain
from onnxplain.cli import main

NET = """\
import torch
from parts.scales import SCALE
from shifts import SHIFT


def build():
    return torch.nn.Threshold(SCALE, SHIFT), (torch.ones(3),)
"""


@pytest.fixture
def sources(folder: pathlib.Path) -> pathlib.Path:
    """A folder with a target that imports two modules."""
    (folder / "parts").mkdir()
    (folder / "net.py").write_text(NET, encoding="utf-8")
    (folder / "parts" / "scales.py").write_text("SCALE = 1\n", encoding="utf-8")
    (folder / "shifts.py").write_text("SHIFT = 1\n", encoding="utf-8")
    return folder


def watch(changes: Sequence[Callable[[], object]], monkeypatch: pytest.MonkeyPatch, *, later: bool) -> tuple[Result, list[tuple[int, int]]]:
    """The result of watching net.py, and the two numbers at each export. Makes one of `changes` in each export, or `later`, then Ctrl-C."""
    seen: list[tuple[int, int]] = []
    left = [*changes]
    export = onnxplain.export

    def change() -> None:
        if not left:
            raise KeyboardInterrupt
        threading.Timer(0.3, left.pop(0)).start() if later else left.pop(0)()

    def exported(model: torch.nn.Threshold, *args: Any, **kwargs: Any) -> onnxplain.ONNXProgram:
        seen.append((int(model.threshold), int(model.value)))
        change()
        return export(model, *args, **kwargs)

    monkeypatch.setitem(vars(onnxplain), "export", exported)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return CliRunner().invoke(main, ["export", "net.py:build", "-o", "out/", "--watch"]), seen


def test_each_source_counts(sources: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(file: str, text: str) -> Callable[[], object]:
        return lambda: (sources / file).write_text(text, encoding="utf-8")

    net = NET.replace("SCALE, SHIFT)", "SCALE + 2, SHIFT)")
    changes = [change("parts/scales.py", "SCALE = 5\n"), change("shifts.py", "SHIFT = 7\n"), change("net.py", net)]
    result, seen = watch(changes, monkeypatch, later=True)
    assert seen == [(1, 1), (5, 1), (5, 7), (7, 7)]
    assert result.exit_code == 130
    assert [line for line in result.stdout.splitlines() if line.startswith("==")] == [
        "== changed: parts/scales.py",
        "== changed: shifts.py",
        "== changed: net.py",
    ]


def test_a_module_that_changes_as_the_export_begins_counts(sources: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = 10**18
    # NOTE: without it, a watch that misses the change would never end.
    later = threading.Timer(10, lambda: (sources / "net.py").write_text(f"{NET}\n", encoding="utf-8"))

    def change() -> None:
        os.utime(sources / "parts" / "scales.py", ns=(began - 1, began - 1))
        os.utime(sources / "shifts.py", ns=(began, began))
        later.start()

    monkeypatch.setattr("time.time_ns", lambda: began)
    result, _ = watch([change], monkeypatch, later=False)
    later.cancel()
    assert [line for line in result.stdout.splitlines() if line.startswith("==")] == ["== changed: shifts.py"]


BROKEN = """\
import pathlib
pathlib.Path(__file__).write_text("SHIFT = 2\\n", encoding="utf-8")
raise ValueError("broken")
"""
"""A module that fails, and repairs its file for the next time."""


def test_a_failure_does_not_end_it(sources: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, seen = watch([lambda: (sources / "shifts.py").write_text(BROKEN, encoding="utf-8")], monkeypatch, later=False)
    assert seen == [(1, 1), (1, 2)]
    assert "ValueError: broken" in result.stderr
    assert result.exit_code == 130


def test_a_failure_at_the_beginning_does_not_end_it(sources: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sources / "shifts.py").write_text(BROKEN, encoding="utf-8")
    result, seen = watch([], monkeypatch, later=False)
    assert seen == [(1, 2)]
    assert result.exit_code == 130


def test_wrong_usage_ends_it(sources: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert CliRunner().invoke(main, ["export", "net", "--watch"]).exit_code == 2


def test_the_missing_package_is_named(sources: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *args: None if name == "watchfiles" else find(name, *args))
    result = CliRunner().invoke(main, ["export", "net.py:build", "--watch"])
    assert (result.exit_code, "pip install watchfiles" in result.stderr) == (1, True)
