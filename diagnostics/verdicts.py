"""A gate's verdict as text, as commands to GitHub Actions, and as reports for CI: JUnit, GitLab's Code Quality, JSON."""

from __future__ import annotations

import collections
import pathlib
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import encode, fingerprint
from .compare import Compared, Finding
from .gate import Verdict
from .level import Level
from .text import Span, visible

_NEW_SHOWN = 100
_OTHERS_SHOWN = 20
"""How many findings a list shows."""

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}


def lines(verdict: Verdict) -> Iterator[list[Span]]:
    """What is new, what was fixed and what stays, a line each, and the verdict."""
    yield from _list("New", verdict.having("new"), _NEW_SHOWN)
    yield from _list("Fixed", verdict.having("absent"), _OTHERS_SHOWN)
    yield from _list("Stays", verdict.having("updated", "unchanged"), _OTHERS_SHOWN)
    yield summary(verdict)


def accepted(compared: Sequence[Compared], baseline: pathlib.Path) -> Iterator[list[Span]]:
    """What the baseline at `baseline` has now that it had not, and what it has no more."""
    added = [each for each in compared if each.state == "new"]
    removed = [each for each in compared if each.state == "absent"]
    yield from _list("Added", added, _NEW_SHOWN)
    yield from _list("Removed", removed, _NEW_SHOWN)
    told = f"{visible(str(baseline))}: {len(added)} added, {len(removed)} removed, {len(compared) - len(added) - len(removed)} kept."
    yield [(told, "headline")]


def summary(verdict: Verdict) -> list[Span]:
    """The verdict on a line: `The gate failed: 2 new errors (at most 0), 1 fixed, 3 stay.`"""
    told = []
    for level in Level:
        limit = verdict.limit(level)
        if verdict.new(level) or limit is not None:
            most = "" if limit is None else f" (at most {limit})"
            told.append(f"{verdict.new(level) or 'no'} new {level.value}{'' if verdict.new(level) == 1 else 's'}{most}")
    stay, fixed = len(verdict.having("updated", "unchanged")), len(verdict.having("absent"))
    told += [f"{fixed} fixed"] if fixed else []
    told += [f"{stay} {'stays' if stay == 1 else 'stay'}"] if stay else []
    told += [f"{verdict.suppressed} suppressed"] if verdict.suppressed else []
    text = f"The gate {'passed' if verdict.passed else 'failed'}: {', '.join(told)}."
    return [(text, "headline" if verdict.passed else "error")]


def text(verdict: Verdict) -> str:
    """The same lines without colours."""
    return "".join(f"{''.join(text for text, _ in line)}\n" for line in lines(verdict))


def github(verdict: Verdict) -> str:
    """Workflow commands that annotate what is new, and the text."""
    # NOTE: nothing in the text is a command between these two; nobody can guess the second.
    token = uuid.uuid4().hex
    commands = "".join(f"{_command(each.finding)}\n" for each in verdict.having("new"))
    return f"{commands}::stop-commands::{token}\n{text(verdict)}::{token}::\n"


def junit(verdict: Verdict) -> str:
    """JUnit's XML: a test case for each finding, which fails if it is new and there are more of its level than there may be."""
    suites = ET.Element("testsuites", name="onnxplain gate")
    by_model: dict[str, list[Compared]] = {model: [] for model in verdict.models}
    for each in verdict.having("new", "updated", "unchanged"):
        by_model[each.finding.model].append(each)
    for model, found in by_model.items():
        suite = ET.SubElement(suites, "testsuite", name=visible(model))
        names: collections.Counter[str] = collections.Counter()
        for each in found:
            name = visible(f"{each.finding.rule}: {each.finding.message}")
            names[name] += 1
            # NOTE: CI tells test cases of two runs by their names; lines move, and equal names are one to some.
            case = ET.SubElement(suite, "testcase", classname=visible(model), name=f"{name} ({names[name]})" if names[name] > 1 else name)
            _fill(case, each, fails=each.state == "new" and verdict.exceeded(each.finding.level))
        if not found:
            # NOTE: CI takes a report without a test for a mistake.
            ET.SubElement(suite, "testcase", classname=visible(model), name="no findings")
        _count(suite)
    _count(suites)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def gitlab(verdict: Verdict) -> str:
    """GitLab's Code Quality report: all findings that count, new or not, since GitLab compares by itself."""
    numbers: collections.Counter[tuple[str, str]] = collections.Counter()
    told = []
    for each in verdict.having("new", "updated", "unchanged"):
        finding, place = each.finding, each.finding.place
        numbers[finding.model, finding.fingerprint] += 1
        told.append(
            {
                "description": visible(finding.message),
                "check_name": finding.rule,
                "fingerprint": fingerprint.digest(finding.model, finding.fingerprint, numbers[finding.model, finding.fingerprint]),
                "severity": _SEVERITIES[finding.level],
                # NOTE: GitLab refuses a finding without a file.
                "location": {"path": visible(place.file or finding.model), "lines": {"begin": place.line or 1}},
            }
        )
    return encode.to_json(told, indent=1)


def as_json(verdict: Verdict) -> str:
    """All of it, as in gate.schema.json of `onnxplain.schemas`."""
    told = {
        "passed": verdict.passed,
        "logs": [str(path) for path in verdict.logs],
        "baseline": None if verdict.baseline is None else str(verdict.baseline),
        "new": {level.value: verdict.new(level) for level in Level},
        "limits": {level.value: verdict.limit(level) for level in Level},
        "suppressed": verdict.suppressed,
        "findings": [_as_json(each) for each in verdict.compared],
    }
    return encode.to_json(told, indent=1)


REPORTS: Mapping[str, Callable[[Verdict], str]] = {"text": text, "github": github, "junit": junit, "gitlab": gitlab, "json": as_json}
"""What `onnxplain gate` prints, by the name of its format."""


def _list(title: str, compared: Sequence[Compared], shown: int) -> Iterator[list[Span]]:
    if compared:
        yield [(f"{title}:", "label")]
    several = len({each.finding.model for each in compared}) > 1
    yield from (_line(each, several=several) for each in compared[:shown])
    if len(compared) > shown:
        yield [(f"  and {len(compared) - shown} more", "faint")]


def _line(compared: Compared, *, several: bool) -> list[Span]:
    finding = compared.finding
    level = finding.level.value
    where = _where(finding)
    raised = "" if compared.raised_from is None else f" (was a {compared.raised_from.value})"
    return [
        (f"  {where}: " if where else "  ", "place"),
        (f"{level}[{visible(finding.rule)}]", level),
        (f": {visible(finding.message)}{raised}", ""),
        (f" in {visible(finding.model)}" if several else "", "faint"),
    ]


def _where(finding: Finding) -> str:
    place = finding.place
    numbers = [str(number) for number in (place.line, place.column) if number is not None]
    return visible(":".join([place.file, *numbers]) if place.file else f"module {place.module}" if place.module else "")


def _command(finding: Finding) -> str:
    place, properties = finding.place, {}
    if place.in_sources:
        properties = {"file": place.file, "line": place.line, "endLine": place.end_line}
        if place.line == place.end_line:
            properties |= {"col": place.column, "endColumn": place.end_column}
    told = {**properties, "title": f"{finding.rule} in {finding.model}"}
    values = (f"{name}={_escaped(str(value), ':,')}" for name, value in told.items() if value is not None)
    return f"::{_COMMANDS[finding.level]} {','.join(values)}::{_escaped(finding.message)}"


def _escaped(text: str, more: str = "") -> str:
    """`text` as GitHub wants it in a command; `more` are characters that separate there."""
    # NOTE: actions/toolkit, packages/core/src/command.ts.
    return "".join(f"%{ord(char):02X}" if char in f"%{more}" else char for char in visible(text))


def _fill(case: ET.Element, compared: Compared, *, fails: bool) -> None:
    finding = compared.finding
    where = _where(finding)
    told = f"{where}: {finding.level.value}: {finding.message}" if where else f"{finding.level.value}: {finding.message}"
    if finding.place.in_sources:
        case.set("file", visible(finding.place.file))
        case.set("line", str(finding.place.line or 1))
    if fails:
        failure = ET.SubElement(case, "failure", message=visible(finding.message), type=visible(finding.rule))
        failure.text = visible(told)
    else:
        why = "new, and within the limit" if compared.state == "new" else "in the baseline"
        ET.SubElement(case, "skipped", message=visible(f"{why}: {told}"))


def _count(element: ET.Element) -> None:
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
    finding, place = compared.finding, compared.finding.place
    told = {
        "state": compared.state,
        "model": finding.model,
        "rule": finding.rule,
        "level": finding.level.value,
        "raisedFrom": None if compared.raised_from is None else compared.raised_from.value,
        "message": finding.message,
        "file": place.file or None,
        "line": place.line,
        "column": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "module": place.module or None,
        "fingerprint": finding.fingerprint,
    }
    return {name: value for name, value in told.items() if value is not None}
