"""Triages of models that crash, hang, print garbage or damage their process: each is a verdict with a log, and the others go on."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Callable

import psutil
import pytest
import warm
from fleets import ENDS, MODELS, causes, events, lines_of, results, triage, verdicts
from sarif_checks import check_log

from onnxplain.triage.state import State

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="triages fork processes")

FORWARD = MODELS.splitlines().index("    def forward(self, x):") + 1


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    return tmp_path


def rule_and_line(log: pathlib.Path) -> tuple[str, int | None]:
    first = results(log)[0]
    place = next(iter(first.get("locations", ())), {}).get("physicalLocation", {})
    return first["ruleId"], place.get("region", {}).get("startLine")


def test_each_end_of_a_process_is_a_verdict_with_a_log(folder: pathlib.Path) -> None:
    names = [f"build_{end}" for end in ENDS if end not in ("loop", "wait")] + [
        "raises",
        "exits",
        "interrupts",
        "folderless",
        "forks",
        "number",
        "duble",
    ]
    result = triage(*(f"models.py:{name}" for name in names), "--jobs", "2", "--no-try-fixes")
    assert result.exit_code == 1, result.output
    assert dict(verdicts(folder / "triage")) == {
        "models:build_exit": "crashed",
        "models:build_crash": "crashed",
        "models:build_print": "exported",
        "models:build_leave": "exported",
        "models:build_fork": "exported",
        "models:build_branch": "failed",
        "models:build_parent": "crashed",
        "models:build_healthy": "exported",
        "models:raises": "not loaded",
        "models:exits": "not loaded",
        "models:interrupts": "not loaded",
        "models:folderless": "not loaded",
        "models:forks": "exported",
        "models:number": "not loaded",
        "models:duble": "not loaded",
    }
    logs = folder / "triage" / "logs"
    assert {log.stem.removeprefix("models_") for log in logs.glob("*.sarif")} == {*names}
    for log in logs.glob("*.sarif"):
        check_log(json.loads(log.read_text(encoding="utf-8")))
    found = {
        end: rule_and_line(logs / f"models_{end}.sarif") for end in ("build_exit", "build_crash", "build_branch", "raises", "interrupts")
    }
    assert found == {
        "build_exit": ("OXP0003", FORWARD),
        "build_crash": ("OXP0003", lines_of("crashes")),
        "build_branch": ("OXP1001", lines_of("branches")),
        "raises": ("OXP0004", lines_of("raises")),
        "interrupts": ("OXP0004", lines_of("interrupts")),
    }
    assert b"\xff\xfe\x1b[31m" in (logs / "models_build_print.txt").read_bytes()
    assert f"line {lines_of('crashes')} in forward" in (logs / "models_build_crash.txt").read_text(encoding="utf-8")
    assert "\x1b" not in result.output
    # How a process ended is its cause, with the function that crashed.
    (crash,) = (cause for cause, blocked in causes(folder / "triage").items() if blocked == ("models:build_crash",))
    assert crash.startswith("SIGSEGV in string_at of ctypes/__init__.py,")
    # What the models have begun is gone.
    here = [each for each in psutil.process_iter(["cwd"]) if each.info["cwd"] == str(folder)]
    assert [each.pid for each in here] in ([], [os.getpid()])
    summary = (folder / "triage" / "summary.md").read_text(encoding="utf-8")
    rows = [line for line in summary.splitlines() if "LookupError" in line]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [7]
    page = (folder / "triage" / "report.html").read_text(encoding="utf-8")
    assert all(f"models:{end}" in page for end in names)
    # The same logs are together in one file, and the gate takes the folder.
    (merged,) = (folder / "triage").glob("triage-*.sarif")
    assert len(json.loads(merged.read_text(encoding="utf-8"))["runs"]) == len(names)


def test_models_that_hang_end_at_their_lines_and_are_one_cause(folder: pathlib.Path) -> None:
    names = ("build_loop", "build_wait", "hangs")
    assert triage(*(f"models.py:{name}" for name in names), "--time-limit", "4", "--jobs", "3").exit_code == 1
    assert sorted(verdicts(folder / "triage")) == [(f"models:{name}", "out of time") for name in names]
    logs = folder / "triage" / "logs"
    rule, line = rule_and_line(logs / "models_build_loop.sarif")
    assert rule == "OXP0003"
    assert line in (lines_of("loops"), lines_of("loops") + 1)
    assert rule_and_line(logs / "models_hangs.sarif") == ("OXP0003", lines_of("hangs"))
    assert [*causes(folder / "triage").values()] == [("models:build_loop", "models:build_wait"), ("models:hangs",)]


@pytest.mark.usefixtures("folder")
def test_a_triage_whose_folder_a_model_removes_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    result = triage("models.py:removes", "models.py:build_healthy", "--jobs", "1")
    assert result.exit_code == 2
    assert "was removed" in result.output
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much memory a process uses")
def test_a_model_that_takes_too_much_memory_ends(folder: pathlib.Path) -> None:
    assert triage("models.py:build_loop", "--memory-limit", "10MB").exit_code == 1
    assert verdicts(folder / "triage") == [("models:build_loop", "out of memory")]


def test_only_what_has_changed_is_exported_again(folder: pathlib.Path) -> None:
    (folder / "sizes.py").write_text("SIZE = 3\n", encoding="utf-8")
    for name in ("one", "two"):
        text = "import torch\n\n\ndef build():\n    return torch.nn.ReLU(), (torch.ones(3),)\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "two.py").write_text(
        (folder / "two.py").read_text(encoding="utf-8").replace("torch\n", "torch, sizes, tabnanny\n", 1), encoding="utf-8"
    )

    def exported(*args: str) -> list[str]:
        before = len(verdicts(folder / "triage")) if (folder / "triage").exists() else 0
        result = triage("one.py", "two.py", *args)
        assert result.exit_code == 0, result.output
        return [name for name, _ in verdicts(folder / "triage")[before:]]

    assert sorted(exported()) == ["one:build", "two:build"]
    assert exported() == []
    # Of Python and of installed packages, the versions count.
    with contextlib.closing(State(folder / "triage")) as state:
        files = state.last()["two:build"].facts.files
    assert [name for name in ("one.py", "two.py", "sizes.py", "tabnanny.py") if any(file.endswith(f"/{name}") for file in files)] == [
        "two.py",
        "sizes.py",
    ]
    (folder / "sizes.py").write_text("SIZE = 4\n", encoding="utf-8")
    assert exported() == ["two:build"]
    (folder / "triage" / "logs" / "one_build.sarif").unlink()
    assert exported() == ["one:build"]
    assert sorted(exported("--opset", "18")) == ["one:build", "two:build"]


def test_each_log_tells_the_settings_of_files_and_variables(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, names = folder / "pyproject.toml", ("build_healthy", "build_exit", "raises")
    settings.write_text("[tool.onnxplain]\ntry-fixes = false\nopset = 19\nrepro = true\n", encoding="utf-8")
    monkeypatch.setenv("ONNXPLAIN_TRIAGE_TIME_LIMIT", "100")
    options = (*(f"models.py:{name}" for name in names), "--opset", "18")
    assert triage(*options).exit_code == 1
    for name in names:
        told = events(folder / "triage" / "logs" / f"models_{name}.sarif")
        places = ("pyproject.toml:2", "pyproject.toml:3", "pyproject.toml:4", "ONNXPLAIN_TRIAGE_TIME_LIMIT")
        assert [sum(place in text for text in told) for place in places] == [1, 0, 0, 1], name
    # Where a setting comes from changes no export.
    settings.write_text("# Settings.\n" + settings.read_text(encoding="utf-8"), encoding="utf-8")
    assert triage(*options).exit_code == 1
    assert len(verdicts(folder / "triage")) == len(names)
    settings.write_text("[tool.onnxplain]\ntry-fixes = true\n", encoding="utf-8")
    assert triage(*options).exit_code == 1
    assert len(verdicts(folder / "triage")) == 2 * len(names)


SLOW = """\
import os
import pathlib
import time

import torch


class Slow(torch.nn.Module):
    def forward(self, x):
        pathlib.Path(f"{os.getpid()}.running").touch()
        time.sleep(0.3 if not pathlib.Path("all at once").exists() else 0)
        return x


def make():
    return Slow(), (torch.ones(3),)


"""
SLOW += "".join(f"build_{letter} = make\n" for letter in "abcdef")


def wait(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_triage_loses_only_the_models_in_flight(folder: pathlib.Path) -> None:
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    out = folder / "triage"
    command = ("-m", "onnxplain", "triage", "slow.py", "--jobs", "2")
    with warm.started(folder, command) as process:
        wait(lambda: (out / "triage.sqlite").exists() and _count(out) >= 2)
        # Another triage in the folder is refused meanwhile.
        assert triage("slow.py").exit_code == 2
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    workers = [int(path.stem) for path in folder.glob("*.running")]
    wait(lambda: not any(map(psutil.pid_exists, workers)), 10)
    kept = verdicts(out)
    assert 2 <= len(kept) < 6
    (folder / "all at once").touch()
    result = triage("slow.py", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert verdicts(out)[: len(kept)] == kept
    assert sorted(verdicts(out)) == [(f"slow:build_{letter}", "exported") for letter in "abcdef"]


def _count(out: pathlib.Path) -> int:
    # NOTE: the table may not be there yet.
    with contextlib.suppress(sqlite3.Error):
        return len(verdicts(out))
    return 0
