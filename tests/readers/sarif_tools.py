"""sarif-tools: the command `sarif`, which counts findings and turns them into tables and into GitLab's reports."""

from __future__ import annotations

import collections
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_GITLAB = {"error": "major", "warning": "minor", "note": "info"}


def check_counts(logs: Sequence[pathlib.Path], folder: pathlib.Path) -> Iterator[str]:
    """The differences between the counts in the summary and those in `logs`. `folder` is for temporary files."""
    levels = collections.Counter(result.get("level") for result in _results(logs))
    summary = _run("summary", logs, folder / "all.txt")
    counted = {level: int(count) for level, count in re.findall(r"^(\w+): (\d+)$", summary, re.MULTILINE) if count != "0"}
    if counted != levels:
        yield f"{counted} for {dict(levels)}"


def check_tables(logs: Sequence[pathlib.Path], folder: pathlib.Path) -> Iterator[str]:
    """The differences between `logs` and their tables for spreadsheets and for GitLab. `folder` is for temporary files."""
    results = _results(logs)
    rows = collections.Counter(tuple(row.values()) for row in csv.DictReader(io.StringIO(_run("csv", logs, folder / "all.csv"))))
    expected = collections.Counter(map(_row, results))
    yield from (f"missing: {row}" for row in (expected - rows).elements())
    yield from (f"too much: {row}" for row in (rows - expected).elements())
    issues = json.loads(_run("codeclimate", logs, folder / "all.json"))
    severities = collections.Counter(issue["severity"] for issue in issues)
    if severities != collections.Counter(_GITLAB.get(result.get("level")) for result in results):
        yield f"{dict(severities)}"


def _results(logs: Sequence[pathlib.Path]) -> list[Mapping[str, Any]]:
    return [result for log in logs for result in json.loads(log.read_text(encoding="utf-8"))["runs"][0]["results"]]


def _run(command: str, logs: Sequence[pathlib.Path], output: pathlib.Path) -> str:
    """The output of a command of sarif-tools for `logs`."""
    arguments = [sys.executable, "-m", "sarif", command, "--output", output, *logs]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output.read_text(encoding="utf-8")


def _row(result: Mapping[str, Any]) -> tuple[str, ...]:
    """A result as a row of the table: tool, level, rule, message, file, line."""
    (location,) = result.get("locations", ({},))
    physical = location.get("physicalLocation", {})
    names = [each["fullyQualifiedName"] for each in location.get("logicalLocations", ())]
    file = physical["artifactLocation"]["uri"] if physical else next(iter(names), "-")
    line = physical.get("region", {}).get("startLine", 1)
    return "onnxplain", result.get("level", ""), result["ruleId"], result["message"]["text"], file, str(line)
