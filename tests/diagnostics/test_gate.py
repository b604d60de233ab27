"""`onnxplain gate` and `onnxplain baseline accept`: what they say of logs, and that nothing but a verdict looks like one."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib.metadata
import json
import linecache
import os
import pathlib
import re
import runpy
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from logs import HOSTILE, context
from sarif_checks import check_log, validate

import onnxplain
from onnxplain import schemas
from onnxplain.cli import main
from onnxplain.diagnostics import DiagnosticOptions, ExportFailed, Level, Location, Region, Rule, judge_logs, read_log, sarif
from onnxplain.rules import (
    CheckDropped,
    ConstantOutput,
    DataDependentBranch,
    DataDependentValue,
    ExampleOfSizeOne,
    OutputsDiffer,
    RandomOperator,
    TrainingMode,
    UnsupportedOperator,
    WriteFailed,
)

VERSION = importlib.metadata.version("onnxplain")
LOG = "net.sarif"
BASELINE = "onnxplain-baseline.sarif"
STATES = ("new", "unchanged", "updated", "absent")


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder, which is the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def write(
    lines: Sequence[str], path: str = LOG, *, model: str = "Net", file: str = "net.py", levels: Mapping[str, Level] | None = None
) -> None:
    """Writes the log of an export of `model`, whose source has these lines.

    `# E` behind one stands for an error there, `# W` for a warning, `# N` for a note, `# EE` for two errors; they are not in the source.
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


# The table


@dataclasses.dataclass(frozen=True)
class Row:
    """A gate on a log: what the baseline accepted, what the log says now, and what comes out.

    Attributes:
        now: The lines of the source, see `write`.
        before: Those of the source when its log was accepted; None for a gate without a baseline.
        options: Options of the gate.
        exit_code: What it exits with.
        states: How many findings are new, unchanged, updated (moved, or with another text) and absent (fixed).
        suppressed: How many count nowhere.
        levels: Levels of the export now.
    """

    now: Sequence[str]
    before: Sequence[str] | None
    exit_code: int
    states: tuple[int, int, int, int]
    suppressed: int = 0
    options: tuple[str, ...] = ()
    levels: Mapping[str, Level] = dataclasses.field(default_factory=dict)


IGNORED = "a  # E  # onnxplain: ignore[OXP1002] known"
MANY = [f"line{number}  # E" for number in range(512)]

TABLE = {
    "no findings": Row(["a"], None, 0, (0, 0, 0, 0)),
    "an error": Row(["a  # E"], None, 1, (1, 0, 0, 0)),
    "as many errors as may be": Row(["a  # E", "b  # E"], None, 0, (2, 0, 0, 0), options=("--max-errors", "2")),
    "one more than may be": Row(["a  # E", "b  # E"], None, 1, (2, 0, 0, 0), options=("--max-errors", "1")),
    "a warning": Row(["a  # W"], None, 0, (1, 0, 0, 0)),
    "a warning too many": Row(["a  # W"], None, 1, (1, 0, 0, 0), options=("--max-warnings", "0")),
    "errors are no warnings": Row(["a  # E"], None, 0, (1, 0, 0, 0), options=("--max-warnings", "0", "--max-errors", "1")),
    "a note": Row(["a  # N"], None, 0, (1, 0, 0, 0), options=("--max-warnings", "0")),
    "255 errors": Row(MANY[:255], None, 1, (255, 0, 0, 0)),
    "256 errors": Row(MANY[:256], None, 1, (256, 0, 0, 0)),
    "512 errors": Row(MANY, None, 1, (512, 0, 0, 0)),
    "suppressed only": Row([IGNORED], None, 0, (0, 0, 0, 0), suppressed=1),
    "suppressed and not": Row([IGNORED, "b  # E"], None, 1, (1, 0, 0, 0), suppressed=1),
    "nothing was accepted": Row(["a  # E"], [], 1, (1, 0, 0, 0)),
    "unchanged": Row(["a  # E", "b  # W"], ["a  # E", "b  # W"], 0, (0, 2, 0, 0), options=("--max-warnings", "0")),
    "moved": Row(["", "", "  a  # E"], ["a  # E"], 0, (0, 0, 1, 0)),
    "another text": Row(["a  # W"], ["", "a  # W"], 0, (0, 0, 1, 0), options=("--max-warnings", "0")),
    "new beside a known one": Row(["b  # E", "a  # E"], ["a  # E"], 1, (1, 0, 1, 0)),
    "another line in its place": Row(["b  # E"], ["a  # E"], 1, (1, 0, 0, 1)),
    "two on one line": Row(["a  # EE"], ["a  # EE"], 0, (0, 2, 0, 0)),
    "a second on the line": Row(["a  # EE"], ["a  # E"], 1, (1, 1, 0, 0)),
    "two on a line that moved": Row(["", "a  # EE"], ["a  # EE"], 0, (0, 0, 2, 0)),
    "equal lines": Row(["a  # E", "a  # E"], ["a  # E", "a  # E"], 0, (0, 2, 0, 0)),
    "a duplicate": Row(["a  # E", "a  # E"], ["a  # E"], 1, (1, 1, 0, 0)),
    "a duplicate above": Row(["a  # E", "", "a  # E"], ["", "", "a  # E"], 1, (1, 1, 0, 0)),
    "one of two equal ones fixed": Row(["", "a  # E"], ["a  # E", "a  # E"], 0, (0, 1, 0, 1)),
    "fixed": Row(["a"], ["a  # E"], 0, (0, 0, 0, 1)),
    "fixed and another": Row(["a", "b  # E"], ["a  # E"], 1, (1, 0, 0, 1)),
    "suppressed since": Row([IGNORED], ["a  # E"], 0, (0, 0, 0, 0), suppressed=1),
    "suppressed before": Row(["a  # E"], [IGNORED], 1, (1, 0, 0, 0)),
    "another suppressed on the line": Row(["a  # EW  # onnxplain: ignore[OXP1007]"], ["a  # EW"], 0, (0, 1, 0, 0), suppressed=1),
    "level raised": Row(["a  # W"], ["a  # W"], 1, (1, 0, 0, 0), levels={"OXP1007": Level.ERROR}),
    "level raised to a warning": Row(
        ["a  # N"], ["a  # N"], 1, (1, 0, 0, 0), levels={"OXP1025": Level.WARNING}, options=("--max-warnings", "0")
    ),
    "level lowered": Row(["a  # E"], ["a  # E"], 0, (0, 1, 0, 0), levels={"OXP1002": Level.WARNING}, options=("--max-warnings", "0")),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, row in TABLE.items() for kind in ([""] if row.before is None else ["accepted", "a log"])]
)
def test_table(name: str, kind: str) -> None:
    row = TABLE[name]
    options = list(row.options)
    if row.before is not None:
        write(row.before, "before.sarif")
        baseline = "before.sarif"
        if kind == "accepted":
            assert run("baseline", "accept", "before.sarif").exit_code == 0
            baseline = BASELINE
        options += ["--baseline", baseline]
    write(row.now, levels=row.levels)
    code, told = verdict(LOG, *options)
    found = [each["state"] for each in told["findings"]]
    assert (code, tuple(map(found.count, STATES)), told["suppressed"]) == (row.exit_code, row.states, row.suppressed)
    assert run("gate", LOG, *options).exit_code == row.exit_code
    if row.before is not None:
        check_log(pathlib.Path(LOG))


def test_the_table_is_what_a_shell_sees() -> None:
    """The count of errors must not be the exit code: 256 would be 0."""
    write(MANY[:256])
    command = [sys.executable, "-m", "onnxplain", "gate", LOG]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    assert subprocess.run([*command, "--max-errors", "256"], capture_output=True, check=False).returncode == 0


def test_a_raised_level_is_told() -> None:
    write(["a  # W"])
    run("baseline", "accept", LOG)
    write(["a  # W"], levels={"OXP1007": Level.ERROR})
    _, told = verdict(LOG, "--baseline", BASELINE)
    assert [(each["state"], each["level"], each["raisedFrom"]) for each in told["findings"]] == [("new", "error", "warning")]


# States in the log


def test_states_are_written() -> None:
    write(["a  # E", "b  # W", "c  # E"])
    run("baseline", "accept", LOG)
    write(["a  # E", "d  # W", "b  # W", f"e{IGNORED[1:]}"])
    before = json.loads(pathlib.Path(LOG).read_text(encoding="utf-8"))
    assert run("gate", LOG, "--baseline", BASELINE).exit_code == 0
    assert sorted(states()) == [("absent", 3), ("new", 2), ("new", 4), ("unchanged", 1), ("updated", 3)]
    after = json.loads(pathlib.Path(LOG).read_text(encoding="utf-8"))
    results = after["runs"][0]["results"]
    fixed = results.pop()
    assert (fixed["baselineState"], fixed["ruleId"], fixed["level"]) == ("absent", "OXP1002", "error")
    assert "ruleIndex" in fixed
    for result in results:
        del result["baselineState"]
    assert after == before
    assert pathlib.Path(LOG).read_bytes().count(b"\n") == 1


def test_nothing_is_written_without_a_baseline() -> None:
    write(["a  # E"])
    before = pathlib.Path(LOG).read_bytes()
    run("gate", LOG)
    assert pathlib.Path(LOG).read_bytes() == before


def test_a_second_gate_says_the_same() -> None:
    write(["a  # E", "b  # W", "b  # W", "c  # N"])
    run("baseline", "accept", LOG)
    write(["", "b  # W", "d  # E"])
    first = verdict(LOG, "--baseline", BASELINE)
    before = pathlib.Path(LOG).read_bytes()
    assert verdict(LOG, "--baseline", BASELINE) == first
    assert pathlib.Path(LOG).read_bytes() == before
    assert [state for state, _ in states()].count("absent") == 3
    assert (first[0], verdict(LOG)[1]["new"]) == (1, {"error": 1, "warning": 1, "note": 0})
    # What is fixed is no finding to those that read the log.
    assert len(read_log(pathlib.Path(LOG)).findings) == 2
    run("baseline", "accept", LOG)
    assert verdict(LOG, "--baseline", BASELINE)[1]["new"] == {"error": 0, "warning": 0, "note": 0}


def test_what_is_fixed_has_no_fixes_to_apply(here: pathlib.Path) -> None:
    write(["a  # E"])
    content = json.loads(pathlib.Path(LOG).read_text(encoding="utf-8"))
    (result,) = content["runs"][0]["results"]
    region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2}
    change = {"artifactLocation": {"uri": (here / "net.py").as_uri()}, "replacements": [{"deletedRegion": region}]}
    fix = {"description": {"text": "Delete it."}, "artifactChanges": [change], "properties": {"confidence": "safe"}}
    result.update(fixes=[fix], baselineState="absent")
    pathlib.Path(LOG).write_text(json.dumps(content), encoding="utf-8")
    assert run("fix", LOG).exit_code == 0
    assert pathlib.Path("net.py").read_text(encoding="utf-8") == "a\n"


# Several logs


def test_several_logs_are_one_gate() -> None:
    write(["a  # E"], "one.sarif", model="One")
    write(["a  # E", "b  # E"], "two.sarif", model="Two")
    run("baseline", "accept", "one.sarif")
    code, told = verdict("one.sarif", "two.sarif", "--baseline", BASELINE, "--max-errors", "2")
    assert (code, told["new"]["error"]) == (0, 2), "what was accepted for one model is not for another"
    assert verdict("one.sarif", "two.sarif", "--baseline", BASELINE, "--max-errors", "1")[0] == 1
    assert [states("one.sarif"), states("two.sarif")] == [[("unchanged", 1)], [("new", 1), ("new", 2)]]


def test_models_that_are_not_gated_are_not_fixed() -> None:
    write(["a  # E"], "one.sarif", model="One")
    write(["a  # E"], "two.sarif", model="Two")
    run("baseline", "accept", "one.sarif", "two.sarif")
    write(["a"], "two.sarif", model="Two")
    _, told = verdict("two.sarif", "--baseline", BASELINE)
    assert [(each["state"], each["model"]) for each in told["findings"]] == [("absent", "Two")]


def test_two_logs_of_one_model_add_up() -> None:
    """Such as those of two sets of example inputs."""
    write(["a  # E", "b  # W"], "one.sarif")
    write(["a  # E"], "two.sarif")
    run("baseline", "accept", "one.sarif", "two.sarif")
    assert verdict("one.sarif", "two.sarif", "--baseline", BASELINE)[0] == 0
    write(["a  # E"], "three.sarif")
    code, told = verdict("one.sarif", "two.sarif", "three.sarif", "--baseline", BASELINE)
    assert (code, told["new"]["error"]) == (1, 1)
    write([""], "one.sarif")
    assert verdict("one.sarif", "two.sarif", "--baseline", BASELINE)[0] == 0
    assert [state for state, _ in states("one.sarif")] == ["absent", "absent"]
    assert [state for state, _ in states("two.sarif")] == ["unchanged"]


# What is no log, and what cannot be judged


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


def text() -> str:
    return pathlib.Path(LOG).read_text(encoding="utf-8")


CORRUPT: dict[str, Callable[[], str | bytes]] = {
    "empty": lambda: "",
    "truncated": lambda: text()[:-100],
    "twice": lambda: text() * 2,
    "not JSON": lambda: "<html></html>",
    "not UTF-8": lambda: text().encode("utf-16"),
    "no object": lambda: "[]",
    "not SARIF": lambda: '{"passed": true}',
    "nested": lambda: "[" * 100_000,
    "nested in a log": lambda: text().replace('"results":[', f'"results":[{"[" * 100_000}'),
    "SARIF 2.2.0": changed("version", value="2.2.0"),
    "no version": changed("version", value=None),
    "another tool's": changed("runs", 0, "tool", "driver", "name", value="ruff"),
    "a newer onnxplain's": changed("runs", 0, "tool", "driver", "semanticVersion", value="999.0.0"),
    "a later onnxplain's": changed("runs", 0, "tool", "driver", "semanticVersion", value=f"{VERSION}.1-rc.1"),
    "of no onnxplain": changed("runs", 0, "tool", "driver", "semanticVersion", value="x.y"),
    "of an unknown onnxplain": changed("runs", 0, "tool", "driver", "semanticVersion", value=None),
    "no runs": changed("runs", value=[]),
    "runs are null": lambda: json.dumps({**json.loads(text()), "runs": None}),
    "a run is a text": changed("runs", value=["x"]),
    "no results": changed("runs", 0, "results", value=None),
    "results are no list": changed("runs", 0, "results", value={}),
    "a result is a text": changed("runs", 0, "results", value=["x"]),
    "no invocation": changed("runs", 0, "invocations", value=[]),
    "of no export": changed("runs", 0, "invocations", value=None),
    "no success": changed("runs", 0, "invocations", 0, "executionSuccessful", value="false"),
    "failed without an error": changed("runs", 0, "results", value=[]),
    "of no model": changed("runs", 0, "automationDetails", value=None),
    "no fingerprints": changed("runs", 0, "results", 0, "partialFingerprints", value=None),
    "no fingerprint of ours": changed("runs", 0, "results", 0, "partialFingerprints", value={"other": "x"}),
    "a wrong fingerprint": changed("runs", 0, "results", 0, "partialFingerprints", "onnxplain/v1", value="x"),
    "no level": changed("runs", 0, "results", 0, "level", value=None),
    "a wrong level": changed("runs", 0, "results", 0, "level", value="fatal"),
    "no rule": changed("runs", 0, "results", 0, "ruleId", value=None),
    "no text": changed("runs", 0, "results", 0, "message", "text", value={}),
    "a line in words": changed("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine", value="six"),
    "line 0": changed("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine", value=0),
    "errors are left out": changed("runs", 0, "properties", value={"onnxplain/sarifProfile": "github", "onnxplain/leftOut": {"error": 1}}),
}


NO_EXPORT = {"no invocation", "of no export", "no success", "failed without an error", "errors are left out"}
"""What a baseline may be: it tells of no export, and findings that it lacks are new."""


@pytest.mark.parametrize("kind", CORRUPT)
def test_what_cannot_be_judged_never_passes(kind: str) -> None:
    write(["b  # E"], "good.sarif", model="Good")
    assert run("baseline", "accept", "good.sarif").exit_code == 0
    accepted, good = pathlib.Path(BASELINE).read_bytes(), pathlib.Path("good.sarif").read_bytes()
    write(["a  # E"])
    data = CORRUPT[kind]()
    pathlib.Path("bad.sarif").write_bytes(data if isinstance(data, bytes) else data.encode())
    commands = [
        ("gate", "bad.sarif", "--max-errors", "99"),
        ("gate", "good.sarif", "bad.sarif", "--baseline", BASELINE, "--max-errors", "99"),
        ("baseline", "accept", "good.sarif", "bad.sarif"),
    ]
    if kind not in NO_EXPORT:
        commands.append(("gate", "good.sarif", "--baseline", "bad.sarif", "--max-errors", "99"))
        commands.append(("baseline", "accept", "good.sarif", "--baseline", "bad.sarif"))
    for command in commands:
        told = run(*command)
        assert (told.exit_code, told.stdout) == (2, ""), command
        assert "bad.sarif" in told.stderr
        assert "bug" not in told.stderr
        assert (pathlib.Path(BASELINE).read_bytes(), pathlib.Path("good.sarif").read_bytes()) == (accepted, good), "nothing is half-written"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("missing.sarif",),
        ("logs/*.sarif",),
        (LOG, "missing.sarif"),
        (".",),
        (LOG, LOG),
        (LOG, f"./{LOG}"),
        (LOG, "link.sarif"),
        (LOG, "--baseline", LOG),
        (LOG, "--baseline", "missing.sarif"),
        (LOG, "--baseline", "."),
        (LOG, "--max-errors", "-1"),
        (LOG, "--max-warnings", "-1"),
        (LOG, "--max-errors", "many"),
        (LOG, "--format", "html"),
        (LOG, "-o", LOG),
        (LOG, "-o", "."),
        (LOG, "-o", f"{LOG}/report.xml"),
        (LOG, "--baseline", BASELINE, "-o", BASELINE),
        (BASELINE,),
    ],
)
def test_bad_usage(arguments: Sequence[str]) -> None:
    write([])
    pathlib.Path("link.sarif").symlink_to(LOG)
    assert run("baseline", "accept", LOG).exit_code == 0
    before = pathlib.Path(LOG).read_bytes()
    told = run("gate", *arguments)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr
    assert pathlib.Path(LOG).read_bytes() == before


def test_a_missing_baseline_is_explained() -> None:
    write([])
    assert "onnxplain baseline accept" in run("gate", LOG, "--baseline", "missing.sarif").stderr


@pytest.mark.parametrize("version", ["0.0.1", "0.1.0", VERSION])
def test_older_logs_are_judged(version: str) -> None:
    write([])
    pathlib.Path(LOG).write_text(changed("runs", 0, "tool", "driver", "semanticVersion", value=version)(), encoding="utf-8")
    assert run("gate", LOG).exit_code == 0


GITHUB = {"onnxplain/sarifProfile": "github"}


@pytest.mark.parametrize(
    ("left_out", "options", "code"),
    [
        ({}, ("--max-warnings", "0"), 0),
        ({"error": 0, "warning": 2, "note": 1}, (), 0),
        ({"error": 0, "warning": 2}, ("--max-warnings", "9"), 2),
        ({"error": 0, "warning": 0, "note": 3}, ("--max-warnings", "0"), 0),
        ({"error": 1}, ("--max-errors", "9"), 2),
        ({"error": "one"}, (), 2),
        ({"fatal": 1}, (), 2),
    ],
)
def test_logs_for_github(left_out: Mapping[str, object], options: Sequence[str], code: int) -> None:
    write(["a  # W", "b  # E", "c  # N"])
    run("baseline", "accept", LOG)
    write([""])
    pathlib.Path(LOG).write_text(changed("runs", 0, "properties", value={**GITHUB, "onnxplain/leftOut": left_out})(), encoding="utf-8")
    told = run("gate", LOG, "--baseline", BASELINE, "--format", "json", *options)
    assert told.exit_code == code
    if code == 0:
        # What is left out may still be there, and GitHub would show as a finding what is fixed.
        fixed = {each["level"] for each in json.loads(told.stdout)["findings"]}
        assert fixed == {level for level in ("error", "warning", "note") if not left_out.get(level)}
        assert json.loads(text())["runs"][0]["results"] == []
    assert run("baseline", "accept", LOG).exit_code == (2 if any(left_out.values()) else 0)


def test_what_stopped_the_export_and_was_suppressed_by_another_tool() -> None:
    write(["a  # E"])
    pathlib.Path(LOG).write_text(changed("runs", 0, "results", 0, "suppressions", value=[{"kind": "external"}])(), encoding="utf-8")
    assert verdict(LOG)[0] == 0
    rejected = changed("runs", 0, "results", 0, "suppressions", value=[{"kind": "external", "status": "rejected"}])
    pathlib.Path(LOG).write_text(rejected(), encoding="utf-8")
    assert verdict(LOG)[0] == 1


# Exit codes


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("boom"), MemoryError(), SystemExit(1), BrokenPipeError(), OSError("x")]
)
@pytest.mark.parametrize("command", [("gate",), ("baseline", "accept")])
def test_whatever_stops_it_is_no_verdict(command: Sequence[str], error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    write([])

    def stop(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("onnxplain.diagnostics.gate.results.opened_sarif", stop)
    assert run(*command, LOG).exit_code == 2


@pytest.mark.parametrize("form", ["text", "github", "json"])
def test_a_pipe_that_nobody_reads(form: str) -> None:
    write(["a  # E"])
    reading, writing = os.pipe()
    os.close(reading)
    try:
        told = subprocess.run(
            [sys.executable, "-m", "onnxplain", "gate", LOG, "--max-errors", "999", "--format", form],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert told.returncode == 2
    assert b"Traceback" not in told.stderr


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [(LOG,), (LOG, "--format", "json"), ("missing.sarif",)])
def test_output_that_cannot_be_written(arguments: Sequence[str]) -> None:
    write([])
    with pathlib.Path("/dev/full").open("w") as full:
        told = subprocess.run([sys.executable, "-m", "onnxplain", "gate", *arguments], stdout=full, stderr=full, check=False)
    assert told.returncode == 2


def read_only(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o444)
    access = os.access
    # NOTE: to root, as whom CI may run, no file is read-only.
    monkeypatch.setattr(os, "access", lambda file, mode: pathlib.Path(file) != path.resolve() and access(file, mode))


@pytest.mark.parametrize("file", [LOG, "other.sarif"])
def test_a_log_that_cannot_be_written(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write([])
    write([], "other.sarif", model="Other")
    run("baseline", "accept", LOG, "other.sarif")
    before = pathlib.Path(file).read_bytes()
    read_only(pathlib.Path(file), monkeypatch)
    told = run("gate", LOG, "other.sarif", "--baseline", BASELINE)
    assert (told.exit_code, told.stdout) == (2, "")
    assert file in told.stderr
    assert pathlib.Path(file).read_bytes() == before
    assert run("gate", LOG, "other.sarif").exit_code == 0, "without a baseline nothing is written"


def test_a_baseline_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write(["a  # E"])
    run("baseline", "accept", LOG)
    before = pathlib.Path(BASELINE).read_bytes()
    read_only(pathlib.Path(BASELINE), monkeypatch)
    write(["b  # E"])
    told = run("baseline", "accept", LOG)
    assert (told.exit_code, told.stdout) == (2, "")
    assert BASELINE in told.stderr
    assert pathlib.Path(BASELINE).read_bytes() == before


def test_a_log_from_a_pipe_has_no_place_for_states() -> None:
    write(["a  # W"])
    command = [sys.executable, "-m", "onnxplain", "gate", "/dev/stdin"]
    log = pathlib.Path(LOG).read_bytes()
    assert subprocess.run(command, input=log, capture_output=True, check=False).returncode == 0
    run("baseline", "accept", LOG)
    told = subprocess.run([*command, "--baseline", BASELINE], input=log, capture_output=True, check=False)
    assert told.returncode == 2
    assert b"/dev/stdin" in told.stderr


def test_a_link_to_a_log_stays_a_link() -> None:
    write(["a  # E"])
    pathlib.Path("link.sarif").symlink_to(LOG)
    run("baseline", "accept", LOG)
    assert run("gate", "link.sarif", "--baseline", BASELINE).exit_code == 0
    assert pathlib.Path("link.sarif").is_symlink()
    assert states() == [("unchanged", 1)]


def test_help_names_the_exit_codes() -> None:
    assert run("gate", "--help").exit_code == 0
    assert "no verdict" in run("gate", "--help").stdout


# The baseline


def accepted() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(pathlib.Path(BASELINE).read_text(encoding="utf-8"))
    validate(content, "baseline")
    return content


def test_what_was_accepted_passes(here: pathlib.Path) -> None:
    outside = here.parent / f"{here.name}-other.py"
    write(["a  # E", "b  # W", IGNORED], file=str(outside))
    told = run("baseline", "accept", LOG)
    assert told.exit_code == 0
    assert told.stdout.count("error[OXP1002]") == 1
    assert run("gate", LOG, "--baseline", BASELINE, "--max-warnings", "0").exit_code == 0
    (made,) = accepted()["runs"]
    assert [each["ruleId"] for each in made["results"]] == ["OXP1002", "OXP1007"]
    assert made["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": outside.name}


def test_the_baseline_tells_nothing_of_the_machine(here: pathlib.Path) -> None:
    source = here / "net.py"
    source.write_text("torch.rand(2)\n" * 3, encoding="utf-8")
    made = context()
    error = RuntimeError(f"secret in {here}")
    at = Location(str(source), Region(1), "forward", "blocks.0")
    made.report(DataDependentBranch(condition=f"open('{here}/net.txt')"), at=at, notes=[str(here)], cause=error)
    with pytest.raises(ExportFailed), made.stage("capture"):
        raise made.fail(WriteFailed(path=f"{here}/net.onnx", error=f"OSError: {here}/net.onnx is full"), cause=error)
    sarif.write(made.log(), pathlib.Path(LOG))
    assert run("baseline", "accept", LOG).exit_code == 0
    accepted()
    text = pathlib.Path(BASELINE).read_text(encoding="utf-8")
    assert not [word for word in (str(here), "file:", "torch.rand", "secret", "Utc", "2026") if word in text]
    assert "net.onnx" in text
    assert "blocks.0" in text


def test_the_baseline_changes_only_with_the_findings() -> None:
    for model in ("Two", "One", "net/work"):
        write(["a  # E", "b  # W", "a  # E"], f"{model[:3]}.sarif", model=model)
    assert run("baseline", "accept", "Two.sarif", "One.sarif").exit_code == 0
    first = pathlib.Path(BASELINE).read_bytes()
    assert run("baseline", "accept", "One.sarif", "Two.sarif").exit_code == 0
    assert run("baseline", "accept", "Two.sarif").exit_code == 0
    assert pathlib.Path(BASELINE).read_bytes() == first
    assert first.count(b"\n") > 50, "a diff has lines to show"
    assert run("baseline", "accept", "net.sarif").exit_code == 0
    assert [made["automationDetails"]["id"] for made in accepted()["runs"]] == [
        f"onnx-export/{each}/" for each in ("One", "Two", "net/work")
    ]


def test_accept_updates_its_models_only() -> None:
    write(["a  # E", "b  # E"], "one.sarif", model="One")
    write(["a  # E"], "two.sarif", model="Two")
    run("baseline", "accept", "one.sarif", "two.sarif")
    before = accepted()["runs"]
    write(["b  # E", "c  # E"], "one.sarif", model="One")
    told = run("baseline", "accept", "one.sarif").stdout
    assert re.findall(r"^(\w+):$|'(\w)\.", told, re.MULTILINE) == [("Added", ""), ("", "c"), ("Removed", ""), ("", "a")]
    one, two = accepted()["runs"]
    assert (one != before[0], two) == (True, before[1])
    write(["a"], "one.sarif", model="One")
    assert run("baseline", "accept", "one.sarif").exit_code == 0
    assert [len(made["results"]) for made in accepted()["runs"]] == [0, 1]


def test_a_failed_export_can_be_accepted() -> None:
    write(["a  # E"])
    assert json.loads(text())["runs"][0]["invocations"][0]["executionSuccessful"] is False
    run("baseline", "accept", LOG, "--baseline", "ci/known.sarif")
    assert run("gate", LOG, "--baseline", "ci/known.sarif").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [(), (LOG, LOG), (LOG, "--baseline", LOG), (LOG, "--baseline", "."), (LOG, "--baseline", "other.sarif")]
)
def test_bad_usage_of_accept(arguments: Sequence[str]) -> None:
    write(["a  # E"])
    write(["a  # E"], "other.sarif", model="Other")
    before = pathlib.Path("other.sarif").read_bytes()
    assert run("baseline", "accept", *arguments).exit_code == 2
    assert pathlib.Path("other.sarif").read_bytes() == before, "a log is no baseline to write over"
    assert not pathlib.Path(BASELINE).exists()


# Formats

EVIL = "x ##[error]y\n::error::z%0A,a:b\r\n::set-output name=a::b </failure>]]> \x00\x1b[31m \ud800 \U0010ffff"
"""What a message and a model's name may hold; each sink keeps it in its place."""


def hostile() -> None:
    """A log whose every name and text is `EVIL` or `HOSTILE`, with an error, a warning and a note."""
    source = pathlib.Path("a,b:c%41\n::error::d ##[warning]é.py")
    source.write_text("\n\nlong\nlonger\n", encoding="utf-8")
    made = context()
    made.subject = EVIL.replace("\0", "")
    at = Location(str(source.absolute()), Region(3, 1, 4, 3), HOSTILE, EVIL)
    made.report(DataDependentBranch(condition=EVIL), at=at)
    made.report(TrainingMode(layers=(HOSTILE,)), at=Location("", module=EVIL))
    made.report(ExampleOfSizeOne(dims=("x",)))
    sarif.write(made.log(), pathlib.Path(LOG))
    content = json.loads(text())
    for result in content["runs"][0]["results"]:
        result["message"]["text"] = f"{EVIL}{HOSTILE}"
    pathlib.Path(LOG).write_text(json.dumps(content), encoding="utf-8")


def commands(output: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """The workflow commands in `output` as a runner of GitHub Actions finds them: name, properties, message."""

    def unescaped(text: str, *more: tuple[str, str]) -> str:
        for code, char in (*more, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(code, char)
        return text

    stopped = None
    for line in re.split(r"\r\n|\r|\n", output):
        if stopped is not None:
            stopped = None if line.strip() == f"::{stopped}::" else stopped
            continue
        found = re.match(r"\s*::([^ :]+)(?: (.*?))?::(.*)", line, re.DOTALL)
        assert found or "##[" not in line
        if found is None:
            continue
        if found[1] == "stop-commands":
            stopped = found[3]
            continue
        pairs = (pair.partition("=") for pair in (found[2] or "").split(",") if pair)
        yield found[1], {name: unescaped(value, ("%3A", ":"), ("%2C", ",")) for name, _, value in pairs}, unescaped(found[3])


def test_github() -> None:
    write(["a  # E", "", "b  # W"])
    run("baseline", "accept", LOG)
    write(["a  # E", "c  # EW", "d  # N"])
    told = run("gate", LOG, "--baseline", BASELINE, "--format", "github")
    assert told.exit_code == 1
    found = list(commands(told.stdout))
    assert [(name, properties["file"], properties["line"], properties["col"]) for name, properties, _ in found] == [
        ("error", "net.py", "2", "1"),
        ("warning", "net.py", "2", "2"),
        ("notice", "net.py", "3", "1"),
    ]
    assert found[0][1] == {"file": "net.py", "line": "2", "endLine": "2", "col": "1", "endColumn": "2", "title": "OXP1002 in Net"}
    assert "'c.1'" in found[0][2]
    assert "error[OXP1002]" in told.stdout


def test_github_takes_hostile_text_for_text() -> None:
    hostile()
    told = run("gate", LOG, "--format", "github")
    found = list(commands(told.stdout))
    assert [name for name, _, _ in found] == ["error", "warning", "notice"]
    properties = found[0][1]
    assert set(properties) == {"file", "line", "endLine", "title"}
    assert properties["file"] == "a,b:c%41\\n::error::d ##[warning]é.py"
    assert all("%0A,a:b\\r\\n::set-output" in message for _, _, message in found)
    assert "file" not in found[1][1]


def test_junit() -> None:
    write(["a  # E", "a  # E", "b  # W", "c  # N"])
    write([], "other.sarif", model="Other")
    told = run("gate", LOG, "other.sarif", "--format", "junit", "-o", "reports/gate.xml")
    assert told.exit_code == 1
    assert len(told.stdout.splitlines()) == 1
    suites = ET.parse("reports/gate.xml").getroot()
    assert dict(suites.items()) == {"name": "onnxplain gate", "tests": "5", "failures": "2", "errors": "0", "skipped": "2"}
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [("Net", "4", "2"), ("Other", "1", "0")]
    cases = suites.findall("testsuite/testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["failure"], ["skipped"], ["skipped"], []]
    assert [(case.get("file"), case.get("line")) for case in cases[:2]] == [("net.py", "1"), ("net.py", "2")]
    assert len({case.get("name") for case in cases}) == len(cases)
    run("gate", LOG, "--max-errors", "2", "--max-warnings", "0", "--format", "junit", "-o", "reports/gate.xml")
    (failure,) = ET.parse("reports/gate.xml").getroot().iter("failure")
    assert failure.get("type") == "OXP1007", "what fails is what fails the gate"


def test_junit_takes_hostile_text_for_text() -> None:
    hostile()
    suites = ET.fromstring(run("gate", LOG, "--format", "junit").stdout.encode())
    (suite,) = suites
    (failure,) = suite.iter("failure")
    assert "</failure>]]> \\x00\\x1b[31m" in (failure.get("message") or "")
    assert len(suite) == 3


def test_gitlab() -> None:
    write(["a  # E"])
    run("baseline", "accept", LOG)
    write(["a  # E", "a  # E", "b  # W", "c  # N", IGNORED])
    write(["a  # E"], "again.sarif")
    told = run("gate", LOG, "again.sarif", "--baseline", BASELINE, "--format", "gitlab")
    found = json.loads(told.stdout)
    # As GitLab's documentation has it: "Implement a custom tool", Code Quality report format.
    assert all(set(each) == {"description", "check_name", "fingerprint", "severity", "location"} for each in found)
    assert [(each["severity"], each["check_name"], each["location"]) for each in found] == [
        ("major", "OXP1002", {"path": "net.py", "lines": {"begin": 1}}),
        ("major", "OXP1002", {"path": "net.py", "lines": {"begin": 2}}),
        ("major", "OXP1002", {"path": "net.py", "lines": {"begin": 1}}),
        ("minor", "OXP1007", {"path": "net.py", "lines": {"begin": 3}}),
        ("info", "OXP1025", {"path": "net.py", "lines": {"begin": 4}}),
    ]
    fingerprints = [each["fingerprint"] for each in found]
    assert len(set(fingerprints)) == 5
    write(["", "c  # N", "b  # W", "a  # E"])
    moved = json.loads(run("gate", LOG, "--format", "gitlab").stdout)
    assert [each["fingerprint"] for each in moved] == [fingerprints[0], *fingerprints[3:]], "GitLab compares by fingerprint"


def test_gitlab_and_json_take_hostile_text_for_text() -> None:
    hostile()
    for each in json.loads(run("gate", LOG, "--format", "gitlab").stdout):
        assert each["location"]["path"]
        assert "\n" not in each["description"] + each["location"]["path"]
    code, told = verdict(LOG)
    assert (code, told["findings"][0]["file"]) == (1, "a,b:c%41\n::error::d ##[warning]é.py")
    assert run("gate", LOG, "--format", "json", "-o", "gate.json").exit_code == 1
    assert json.loads(pathlib.Path("gate.json").read_text(encoding="utf-8")) == told


def test_text_takes_hostile_text_for_text() -> None:
    hostile()
    output = run("gate", LOG).stdout
    assert len(output.splitlines()) == 5
    assert "\x1b" not in output
    run("baseline", "accept", LOG)
    accepted()
    assert run("gate", LOG, "--baseline", BASELINE).exit_code == 0


def test_text_is_short_for_many_findings() -> None:
    write(MANY[:130])
    output = run("gate", LOG).stdout
    assert output.count("error[OXP1002]") == 100
    assert "30 more" in output
    assert "130 new errors" in output


def test_output_to_a_file() -> None:
    write(["a  # E"])
    told = run("gate", LOG, "-o", "gate.txt")
    assert told.exit_code == 1
    assert "error[OXP1002]" in pathlib.Path("gate.txt").read_text(encoding="utf-8")
    assert ("error[OXP1002]" in told.stdout, len(told.stdout.splitlines())) == (False, 1)


def test_a_gate_needs_no_heavy_library() -> None:
    write([])
    program = f"""\
import sys
from onnxplain.cli import main
main(["baseline", "accept", {LOG!r}], standalone_mode=False)
main(["gate", {LOG!r}, "--baseline", {BASELINE!r}], standalone_mode=False)
assert not {{"torch", "numpy", "onnx", "onnx_ir", "onnxscript", "onnxruntime"}} & {{*sys.modules}}
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("equal", [False, True], ids=["different", "equal"])
def test_a_large_log(equal: bool) -> None:
    write(["a  # E"])
    content = json.loads(text())
    (result,) = content["runs"][0]["results"]

    def results(numbers: range) -> Iterator[dict[str, Any]]:
        for number in numbers:
            made = copy.deepcopy(result)
            made["locations"][0]["physicalLocation"]["region"].update(startLine=number, endLine=number)
            made["partialFingerprints"]["onnxplain/v1"] = f"{0 if equal else number:032x}:{number if equal else 1}"
            yield made

    for name, numbers in (("before.sarif", range(1, 10_001)), (LOG, range(3_001, 13_001))):
        content["runs"][0]["results"] = list(results(numbers))
        pathlib.Path(name).write_text(json.dumps(content), encoding="utf-8")
    started = time.process_time()
    assert run("baseline", "accept", "before.sarif").exit_code == 0
    code, told = verdict_of_many(LOG, "--baseline", BASELINE)
    # NOTE: it takes about 5 seconds; what grows with the square of the findings takes minutes.
    assert time.process_time() - started < 30
    assert (code, told) == ((0, (0, 7_000, 3_000, 0)) if equal else (1, (3_000, 7_000, 0, 3_000)))


def verdict_of_many(*arguments: str) -> tuple[int, tuple[int, ...]]:
    told = run("gate", *arguments, "--format", "json")
    found = [each["state"] for each in json.loads(told.stdout)["findings"]]
    return told.exit_code, tuple(map(found.count, STATES))


# Exports


def elsewhere(program: str) -> str:
    """`program` with lines above, and with another operator before those of `forward`."""
    lines = program.splitlines()
    forward = next(each for each in ast.walk(ast.parse(program)) if isinstance(each, ast.FunctionDef) and each.name == "forward")
    first, x = forward.body[0], forward.args.args[1].arg
    lines.insert(first.lineno - 1, f"{' ' * first.col_offset}unrelated = (({x} + 1) * 2 + 1).sum() * 2 if {x} is not None else None")
    return "\n".join(["# Some", "# lines", "", *lines, ""])


@pytest.mark.parametrize(
    "rule",
    [CheckDropped, ConstantOutput, DataDependentBranch, DataDependentValue, OutputsDiffer, RandomOperator, UnsupportedOperator],
    ids=lambda rule: rule.__name__,
)
def test_a_finding_is_the_same_after_edits_elsewhere(rule: type[Rule], here: pathlib.Path) -> None:
    def export(program: str) -> None:
        (here / "model.py").write_text(program, encoding="utf-8")
        try:
            log = runpy.run_path("model.py")["program"].diagnostics
        except onnxplain.ExportFailed as failed:
            log = failed.log
        assert [finding.rule.id for finding in log.findings] == [rule.id]
        sarif.write(log, pathlib.Path(LOG))

    export(rule.page.failing)
    run("baseline", "accept", LOG)
    export(elsewhere(rule.page.failing))
    told = run("gate", LOG, "--baseline", BASELINE, "--max-warnings", "0")
    assert told.exit_code == 0, told.stdout
    assert [state for state, _ in states()] == ["updated"]


def test_judge_from_python() -> None:
    write(["a  # E"])
    judged = judge_logs([pathlib.Path(LOG)], max_errors=1)
    assert (judged.passed, judged.new(Level.ERROR)) == (True, 1)
    with pytest.raises(onnxplain.OnnxExporterError):
        judge_logs([])
