"""The formats of a gate's report: one function each, which `onnxplain gate --format` offers under its name."""

from __future__ import annotations

import collections
import dataclasses
import json as json_module
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from onnxplain.diagnostics.display import visible
from onnxplain.diagnostics.fingerprint import digest
from onnxplain.diagnostics.json_text import to_json
from onnxplain.diagnostics.level import Level

from .comparison import Compared, where
from .results import Result
from .verdict import Verdict


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of a gate's report.

    Attributes:
        name: Its name on the command line.
        summary: What it is for, on one line; the help of the command shows it.
        says_verdict: True if the report itself tells a reader of the terminal the verdict.
        render: Writes the report.
    """

    name: str
    summary: str
    says_verdict: bool
    render: Callable[[Verdict], str]


GATE_FORMATS: dict[str, Format] = {}
"""Every format, by name, in the order of definition."""


def report_format(*, says_verdict: bool = False) -> Callable[[Callable[[Verdict], str]], Callable[[Verdict], str]]:
    """Registers a function as the format of its name. The first line of its docstring says what the format is for."""

    def register(function: Callable[[Verdict], str]) -> Callable[[Verdict], str]:
        summary = (function.__doc__ or "").partition("\n")[0].rstrip(".")
        GATE_FORMATS[function.__name__] = Format(function.__name__, summary, says_verdict, function)
        return function

    return register


@report_format(says_verdict=True)
def text(verdict: Verdict) -> str:
    """Lines for people."""
    return "".join(f"{''.join(text for text, _ in line)}\n" for line in verdict.lines())


@report_format(says_verdict=True)
def github(verdict: Verdict) -> str:
    """Annotations of a pull request on GitHub, and the text."""
    # NOTE: between these two lines GitHub takes nothing for a command. Nobody can guess the token that ends it.
    token = uuid.uuid4().hex
    commands = "".join(f"{_command(each.result)}\n" for each in verdict.having("new"))
    return f"{commands}::stop-commands::{token}\n{text(verdict)}::{token}::\n"


@report_format()
def junit(verdict: Verdict) -> str:
    """JUnit's XML, with a test case for each finding.

    A test case fails if its finding is new and the limit for its level is exceeded.
    """
    suites = ET.Element("testsuites", name="onnxplain gate")
    by_model: dict[str, list[Compared]] = {model: [] for model in verdict.models}
    for each in verdict.having("new", "updated", "unchanged"):
        by_model[each.result.model].append(each)
    for model, found in by_model.items():
        suite = ET.SubElement(suites, "testsuite", name=visible(model))
        names: collections.Counter[str] = collections.Counter()
        for each in found:
            name = visible(f"{each.result.rule}: {each.result.message}")
            names[name] += 1
            # NOTE: CI matches the test cases of two runs by name. Lines move, so the name has no line, and equal names get numbers.
            case = ET.SubElement(suite, "testcase", classname=visible(model), name=f"{name} ({names[name]})" if names[name] > 1 else name)
            _fill(case, each, fails=each.state == "new" and verdict.exceeded(each.result.level))
        if not found:
            # NOTE: CI takes a report without test cases for a mistake.
            ET.SubElement(suite, "testcase", classname=visible(model), name="no findings")
        _count(suite)
    _count(suites)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


@report_format()
def gitlab(verdict: Verdict) -> str:
    """GitLab's Code Quality report.

    It holds new and known findings, because GitLab itself compares reports.
    """
    severities = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
    numbers: collections.Counter[tuple[str, str]] = collections.Counter()
    issues = []
    for each in verdict.having("new", "updated", "unchanged"):
        result, place = each.result, each.result.place
        numbers[result.model, result.fingerprint] += 1
        issues.append(
            {
                "description": visible(result.message),
                "check_name": result.rule,
                "fingerprint": digest(result.model, result.fingerprint, numbers[result.model, result.fingerprint]),
                "severity": severities[result.level],
                # NOTE: GitLab refuses an issue without a file.
                "location": {"path": visible(place.file or result.model), "lines": {"begin": place.line or 1}},
            }
        )
    return _printable(to_json(issues, indent=1))


@report_format()
def json(verdict: Verdict) -> str:
    """Everything, for programs: see gate.schema.json in onnxplain.schemas."""
    report = {
        "passed": verdict.passed,
        "logs": [str(path) for path in verdict.logs],
        "baseline": None if verdict.baseline is None else str(verdict.baseline),
        "new": {level.value: verdict.new(level) for level in Level},
        "limits": {level.value: verdict.limit(level) for level in Level},
        "suppressed": verdict.suppressed,
        "flaky": len(verdict.flaky),
        "findings": [_as_json(each) for each in verdict.compared],
    }
    return _printable(to_json(report, indent=1))


def _printable(document: str) -> str:
    """A JSON document with JSON's escapes for what could steer a terminal. Its content stays the same."""
    lines = document.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_escaped_for_json, line)) for line in lines)


def _escaped_for_json(char: str) -> str:
    return char if char.isprintable() else json_module.dumps(char)[1:-1]


def _command(result: Result) -> str:
    """A workflow command that annotates the place of `result`."""
    commands = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
    place, position = result.place, dict[str, object]()
    if place.in_sources:
        position = {"file": place.file, "line": place.line, "endLine": place.end_line}
        if place.line == place.end_line:
            position |= {"col": place.column, "endColumn": place.end_column}
    properties = {**position, "title": f"{result.rule} in {result.model}"}
    values = (f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items() if value is not None)
    return f"::{commands[result.level]} {','.join(values)}::{_escaped(result.message)}"


def _escaped(text: str, more: str = "") -> str:
    """`text`, escaped for a workflow command. `more` are further characters to escape."""
    # NOTE: actions/toolkit, packages/core/src/command.ts.
    return "".join(f"%{ord(char):02X}" if char in f"%{more}" else char for char in visible(text))


def _fill(case: ET.Element, compared: Compared, *, fails: bool) -> None:
    """Adds place and outcome to a test case."""
    result = compared.result
    place = where(result)
    told = f"{place}: {result.level.value}: {result.message}" if place else f"{result.level.value}: {result.message}"
    if result.place.in_sources:
        case.set("file", visible(result.place.file))
        case.set("line", str(result.place.line or 1))
    if fails:
        failure = ET.SubElement(case, "failure", message=visible(result.message), type=visible(result.rule))
        failure.text = visible(told)
    else:
        why = "new, but within the limit" if compared.state == "new" else "in the baseline"
        ET.SubElement(case, "skipped", message=visible(f"{why}: {told}"))


def _count(element: ET.Element) -> None:
    """Sets the numbers of test cases of a suite."""
    cases = element.findall(".//testcase")
    counts = {
        "tests": len(cases),
        "failures": len(element.findall(".//failure")),
        "errors": 0,
        "skipped": len(element.findall(".//skipped")),
    }
    for name, count in counts.items():
        element.set(name, str(count))


def _as_json(compared: Compared) -> dict[str, Any]:
    result, place = compared.result, compared.result.place
    values = {
        "state": compared.state,
        "model": result.model,
        "rule": result.rule,
        "level": result.level.value,
        "raisedFrom": None if compared.raised_from is None else compared.raised_from.value,
        "message": result.message,
        "file": place.file or None,
        "line": place.line,
        "column": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "module": place.module or None,
        "fingerprint": result.fingerprint,
    }
    return {name: value for name, value in values.items() if value is not None}
