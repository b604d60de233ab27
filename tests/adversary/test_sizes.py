"""Logs with much in them: each command reads them in seconds and with bounded memory, or refuses them in a sentence.

`cd tests && ../.venv/bin/python -m adversary.test_sizes` prints the figures of logs as large as onnxplain reads.
"""

from __future__ import annotations

import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from full_log import SAMPLES, SOURCES, full_log

COMMANDS = (("fix",), ("fix", "--diff"), ("report",), ("gate",), ("gate", "--format", "json"))
PROGRAM = """\
import contextlib, io, pathlib, re, sys, time
from onnxplain.cli import main
began, told = time.perf_counter(), io.StringIO()
with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
    try:
        main(sys.argv[1:])
    except SystemExit as ended:
        code = ended.code
# NOTE: ru_maxrss would count the memory of the process that started this one.
peak = int(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024
print(code, time.perf_counter() - began, peak, len(told.getvalue()))
"""


def run(log: pathlib.Path, command: str, *options: str) -> tuple[int, float, float, int]:
    """A command in a process: its exit code, seconds, the most memory in MB, and the characters that it printed."""
    arguments = [sys.executable, "-c", PROGRAM, command, str(log), *options]
    code, seconds, memory, printed = subprocess.run(arguments, cwd=log.parent, capture_output=True, text=True, check=True).stdout.split()
    return int(code), float(seconds), float(memory), int(printed)


def many(number: int) -> dict[str, Any]:
    """A log with many findings, all with an edit of one of two files."""
    document = full_log()
    (part,) = document["runs"]
    results = []
    for index in range(number):
        result = copy.copy(part["results"][index % 3])
        result |= {"partialFingerprints": {"onnxplain/v1": f"{index:032x}:1"}}
        results.append(result)
    part["results"] = results
    return document


def wide(size: int) -> dict[str, Any]:
    """A log whose texts are long."""
    document = full_log()
    text = "see https://example.com/ " * (size // 25)
    result = document["runs"][0]["results"][0]
    result["message"]["text"] = text
    result["properties"] |= {"cause": text, "notes": [text]}
    result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] = text
    result["locations"][0]["physicalLocation"]["contextRegion"]["snippet"]["text"] = text
    document["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] = text
    return document


def written(folder: pathlib.Path, name: str, text: str) -> pathlib.Path:
    for source in SOURCES:
        shutil.copy(SAMPLES / source, folder)
    path = folder / f"{name}.sarif"
    path.write_text(text, encoding="utf-8")
    return path


LARGE: dict[str, Callable[[], dict[str, Any]]] = {
    "findings": lambda: many(5_000),
    "texts": lambda: wide(1_000_000),
    "lists": lambda: {"runs": [[]] * 300_000, "version": "2.1.0"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_logs_take_seconds(tmp_path: pathlib.Path, name: str) -> None:
    log = written(tmp_path, name, json.dumps(LARGE[name]()))
    for command in COMMANDS:
        code, seconds, memory, printed = run(log, *command)
        assert code in ((2,) if name == "lists" else (0, 1)), command
        assert seconds < 30, command
        assert memory < 500, command
        assert printed < 5_000_000, command


@pytest.mark.parametrize("command", ["fix", "report", "gate"])
def test_a_log_above_the_limit_is_refused(tmp_path: pathlib.Path, command: str) -> None:
    log = tmp_path / "huge.sarif"
    with log.open("wb") as file:
        file.truncate(200 * 10**6)
    code, seconds, memory, _ = run(log, command)
    assert code == 2
    assert seconds < 20
    assert memory < 300


@pytest.mark.parametrize("command", ["fix", "report", "gate"])
@pytest.mark.parametrize("part", ["[],", "{},", "[[[[]]]],", '"",'])
def test_a_log_of_nothing_but_parts_is_refused_before_it_takes_memory(tmp_path: pathlib.Path, command: str, part: str) -> None:
    log = tmp_path / "parts.sarif"
    log.write_text('{"version": "2.1.0", "runs": [' + part * (30_000_000 // len(part)) + "[]]}", encoding="utf-8")
    code, seconds, memory, _ = run(log, command)
    assert code == 2
    assert seconds < 20
    assert memory < 300


@pytest.mark.parametrize("command", ["fix", "report", "gate"])
def test_a_device_is_refused(tmp_path: pathlib.Path, command: str) -> None:
    (tmp_path / "zero.sarif").symlink_to("/dev/zero")
    assert run(tmp_path / "zero.sarif", command)[0] == 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        slim = many(100_000)
        for each in slim["runs"][0]["results"]:
            for part in ("codeFlows", "fixes", "graphs", "logicalLocations", "relatedLocations", "stacks"):
                each.pop(part, None)
            each["properties"] = {"blocking": True}
            each["locations"] = [{"physicalLocation": {**each["locations"][0]["physicalLocation"], "contextRegion": None}}]
            del each["locations"][0]["physicalLocation"]["contextRegion"]
        logs = {
            "12,000 findings with all their parts": json.dumps(many(12_000), separators=(",", ":")),
            "100,000 short findings": json.dumps(slim, separators=(",", ":")),
            "five texts of 12 MB": json.dumps(wide(12_000_000)),
            "21 million lists": '{"version": "2.1.0", "runs": [' + "[]," * 21_000_000 + "[]]}",
            "200 MB": " " * 200_000_000,
        }
        for name, text in logs.items():
            path = written(pathlib.Path(made), "large", text)
            print(f"{name}, {len(text) / 10**6:.0f} MB")  # noqa: T201  figures for whoever runs it
            for command in COMMANDS:
                code, seconds, memory, printed = run(path, *command)
                print(f"  {' '.join(command):<20} exit code {code}, {seconds:5.1f} s, {memory:5.0f} MB, {printed:,} characters")  # noqa: T201  likewise
