"""Logs for tests of the gate, and short ways to call it."""

from __future__ import annotations

import importlib.metadata
import json
import linecache
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jsonschema
from click.testing import CliRunner, Result
from logs import context
from sarif_checks import check_log, validate

from onnxplain import schemas
from onnxplain.cli import main
from onnxplain.diagnostics import DiagnosticOptions, Level, Location, Region, Rule, sarif
from onnxplain.rules import DataDependentValue, ExampleOfSizeOne, TrainingMode

VERSION = importlib.metadata.version("onnxplain")

LOG = "net.sarif"

BASELINE = "onnxplain-baseline.sarif"

STATES = ("new", "unchanged", "updated", "absent")

IGNORED = "a  # E  # onnxplain: ignore[OXP1002] known"

MANY = [f"line{number}  # E" for number in range(512)]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def write(
    lines: Sequence[str], path: str = LOG, *, model: str = "Net", file: str = "net.py", levels: Mapping[str, Level] | None = None
) -> None:
    """Writes the log of an export of `model`, whose source has these lines.

    A line that ends with `# E` has an error, with `# W` a warning, with `# N` a note, with `# EE` two errors. The source lacks these marks.
    """
    source = pathlib.Path(file)
    parts = [re.fullmatch(r"(.*?)(?:  # ([EWN]+))?(  # onnxplain.*)?", line) for line in lines]
    told = [(code, marks or "", comment or "") for code, marks, comment in (part.groups() for part in parts if part)]
    source.write_text("".join(f"{code}{comment}\n" for code, _, comment in told), encoding="utf-8")
    linecache.clearcache()
    made = context(DiagnosticOptions(levels=levels or {}))
    made.subject = model
    for number, (code, marks, _) in enumerate(told, 1):
        for column, mark in enumerate(marks, 1):
            rules: dict[str, Rule] = {
                "E": DataDependentValue(expression=f"{code.strip()}.{column}"),
                "W": TrainingMode(layers=(f"{code}{number}",)),
                "N": ExampleOfSizeOne(dims=(code,)),
            }
            made.report(rules[mark], at=Location(str(source.absolute()), Region(number, column, number, column + 1)))
    sarif.write(made.log(), pathlib.Path(path))


def states(path: str = LOG) -> list[tuple[str, int]]:
    """State and line of each result."""
    results = check_log(pathlib.Path(path))["runs"][0]["results"]
    return [(each["baselineState"], each["locations"][0]["physicalLocation"]["region"]["startLine"]) for each in results]


def verdict(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a gate, which is valid."""
    told = run("gate", *arguments, "--format", "json")
    content = json.loads(told.stdout)
    jsonschema.Draft202012Validator(schemas.load("gate")).validate(content)
    assert content["passed"] is (told.exit_code == 0)
    return told.exit_code, content


def text() -> str:
    return pathlib.Path(LOG).read_text(encoding="utf-8")


def changed(*keys: str | int, value: object) -> Callable[[], str]:
    """A log with another value."""

    def make() -> str:
        content = json.loads(pathlib.Path(LOG).read_text(encoding="utf-8"))
        item = content
        for key in keys[:-1]:
            item = item[key]
        if value is None:
            del item[keys[-1]]
        else:
            item[keys[-1]] = value
        return json.dumps(content)

    return make


def accepted() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(pathlib.Path(BASELINE).read_text(encoding="utf-8"))
    validate(content, "baseline")
    return content
