"""`onnxplain report`: a restored log makes the same report, and other files are refused."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import logging
import pathlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from click.testing import CliRunner, Result
from logs import HOSTILE, SOURCE, context, exported, failed

from onnxplain.cli import main
from onnxplain.diagnostics import (
    PROFILE,
    Confidence,
    DiagnosticOptions,
    Edit,
    Evidence,
    ExportFailed,
    Fix,
    Level,
    Location,
    Log,
    Recorded,
    Region,
    UnreadableLog,
    markdown,
    read_log,
    sarif,
)
from onnxplain.rules import DataDependentBranch, NameChanged, TrainingMode, UnsupportedOverload


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["report", *arguments])


def saved(log: Log, change: Callable[[dict[str, Any]], object] | None = None) -> pathlib.Path:
    path = pathlib.Path("log.sarif")
    content = json.loads(sarif.to_json(log))
    if change:
        change(content["runs"][0])
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def with_options(source: str) -> Log:
    """The log of an export with all options set, a profile, and two findings that warnings as errors raise."""
    made = context(
        DiagnosticOptions(
            verbosity_level=logging.DEBUG,
            warnings_as_errors=True,
            levels={"OXP4": Level.WARNING, "OXP1007": Level.NOTE},
            select=("OXP1", "OXP4"),
            ignore=("OXP1001",),
        )
    )
    with made.stage("build"):
        made.report(NameChanged(kind="input", asked="x", given="x_1"), at=Location(source, Region(5), message="Here"))
        made.report(TrainingMode(layers=tuple(map(str, range(9)))), at=Location("", module="blocks.0"))
        made.report(DataDependentBranch(condition="x"))
        made.event("A step", logging.DEBUG)
    made.attach(PROFILE, lambda: "forward 1.5", logging.CRITICAL)
    return made.log()


def with_edits(source: str) -> Log:
    """The log of findings with several fixes each: equal ones, without edits, one that inserts."""
    made = context()
    advice = Fix("Think again.", Confidence.GUESS)
    insertion = Fix("Check it before.", Confidence.GUESS, edits=(Edit(source, Region(6, 9, 6, 9), "torch._check(x)\n        "),))
    far = Fix("Say so.", Confidence.GUESS, edits=(Edit(source, Region(1, 13, 1, 13), "\nimport math"),))
    two = Fix("Change both", Confidence.SAFE, edits=(Edit(source, Region(6, 12, 6, 13), "y"), Edit(source, Region(7, 20, 7, 22), "y")))
    fixes = [advice, insertion, two, insertion, far]
    for line in (6, 7):
        made.report(DataDependentBranch(condition=f"x[{line}]"), at=Location(source, Region(line, 9, line)), fixes=fixes)
    return made.log()


@pytest.mark.parametrize("make", [failed, with_options, with_edits, lambda source: exported(pathlib.Path(source).parent)])
def test_a_log_that_was_read_makes_the_same_report(make: Callable[[str], Log], source: str) -> None:
    log = make(source)
    path = saved(log)
    report = markdown.to_markdown(log)
    assert markdown.to_markdown(read_log(path)) == report
    told = run(str(path))
    assert (told.exit_code, told.stdout) == (0, report)
    assert run(str(path), "-o", "reports/flip.md").stdout == ""
    assert pathlib.Path("reports/flip.md").read_text(encoding="utf-8") == report


@pytest.mark.parametrize("make", [failed, with_edits])
@pytest.mark.parametrize(
    "now", [None, "", SOURCE.replace("x.sum()", "x.max()"), "# new\n" + SOURCE], ids=["gone", "empty", "changed", "moved"]
)
def test_the_log_tells_its_sources(make: Callable[[str], Log], now: str | None, source: str) -> None:
    log = make(source)
    path, report = saved(log), markdown.to_markdown(log)
    pathlib.Path(source).unlink()
    if now is not None:
        pathlib.Path(source).write_text(now, encoding="utf-8")
    blocks = [markdown.to_markdown(read_log(path)).split("```text")[1:2], report.split("```text")[1:2]]
    assert blocks[0] == blocks[1]
    diff = "-        if x.sum() < 0:\n"
    assert diff in report
    assert diff in run(str(path)).stdout


@pytest.mark.parametrize("has_end", [True, False])
def test_a_log_that_its_export_did_not_finish_may_lack_the_end(has_end: bool, source: str) -> None:
    made = failed(source)
    log = dataclasses.replace(made, ended=made.started + datetime.timedelta(seconds=3))

    def cut(run: dict[str, Any]) -> None:
        run["properties"]["onnxplain/unfinished"] = "killed"
        if not has_end:
            del run["invocations"][0]["endTimeUtc"]

    found = read_log(saved(log, cut))
    assert (found.unfinished, found.ended - found.started) == ("killed", datetime.timedelta(seconds=3 if has_end else 0))


@pytest.mark.parametrize(("count", "taken"), [(1000, 1000), (1001, 1)])
def test_a_region_of_too_many_lines_has_its_own_text_only(count: int, taken: int, source: str) -> None:
    """Each of many findings could have all lines of a log otherwise."""
    made, texts = context(), tuple(f"x = {number}" for number in range(1, count + 1))
    made.report(DataDependentBranch(condition="x"), at=Location(source, Region(6, 9, 6, 12)))

    def longer(run: dict[str, Any]) -> None:
        place = run["results"][0]["locations"][0]["physicalLocation"]
        place["region"] = {"startLine": 1, "startColumn": 1, "endLine": count, "endColumn": 2, "snippet": {"text": texts[0]}}
        place["contextRegion"] = {"startLine": 1, "endLine": count, "snippet": {"text": "\n".join(texts)}}

    (finding,) = read_log(saved(made.log(), longer)).findings
    assert finding.location is not None
    assert finding.location.region is not None
    assert finding.location.region.lines == texts[:taken]


def test_a_line_of_which_the_log_knows_a_part(source: str) -> None:
    made = context()
    frame = Location(source, Region(8, 22, 8, 32), "forward")
    made.report(DataDependentBranch(condition="x"), at=Evidence(Location("", module="a"), (frame, frame)))
    path = saved(made.log())
    assert "    return torch.linalg.foo(x)\n" in run(str(path)).stdout
    pathlib.Path(source).unlink()
    assert "    linalg.foo\n" in run(str(path)).stdout


@pytest.mark.parametrize("before", [0, 1_000])
def test_places_of_several_lines(source: str, before: int) -> None:
    pathlib.Path(source).write_text("\n" * before + SOURCE, encoding="utf-8")
    lines = pathlib.Path(source).read_text(encoding="utf-8").splitlines()
    blocks = [(6, 9, 8, 35), (4, None, 4, None), (2, 1, 9, 1), (7, 13, 8, 15)]
    regions = [Region(before + line, column, before + last, end_column) for line, column, last, end_column in blocks]
    made = context()
    at = Location(source, Region(before + 1, 8, before + 1, 13))
    made.report(DataDependentBranch(condition="x"), at=Evidence(at, tuple(Location(source, region) for region in regions)))
    path = saved(made.log())
    (found,) = read_log(path).findings
    assert [frame.region for frame in found.stack] == regions
    assert [frame.region.texts(source) for frame in found.stack[::3]] == [tuple(lines[before + first : before + 8]) for first in (5, 6)]
    pathlib.Path(source).unlink()
    (found,) = read_log(path).findings
    assert found.location.snippet == "import torch"
    texts = [[line.strip() for line in frame.region.texts(source)] for frame in found.stack[:3]]
    assert texts == [[line.strip() for line in lines[before + first : before + last]] for first, last in ((5, 8), (3, 4), (1, 9))]


def test_a_file_that_is_gone_is_named_as_in_the_folder_of_the_export(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(failed(source)).absolute()
    other = path.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert "`flip.py:6:12 in" in run(str(path)).stdout
    (path.parent / ".git").mkdir()
    assert "`../flip.py:6:12 in" in run(str(path)).stdout
    pathlib.Path(source).unlink()
    assert "`flip.py:6:12 in" in run(str(path)).stdout


def test_a_file_that_is_gone_is_named_as_in_a_folder_below_the_root(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = pathlib.Path(source).parent
    (root / ".git").mkdir()
    (root / "nets").mkdir()
    monkeypatch.chdir(root / "nets")
    file = pathlib.Path(source).rename("flip.py")
    path = saved(failed(str(file.absolute()))).absolute()
    monkeypatch.chdir(root)
    assert "`nets/flip.py:6:12 in" in run(str(path)).stdout
    (root / "nets" / "flip.py").unlink()
    assert "`flip.py:6:12 in" in run(str(path)).stdout


def test_rules_are_those_of_the_log(source: str) -> None:
    def change(run: Mapping[str, Any]) -> None:
        branch, training, operator = run["tool"]["driver"]["rules"]
        branch.update(id="OXP1999", name="NewerRule", messageStrings={"default": {"text": "It says '{0}' anew."}})
        training["messageStrings"]["default"]["text"] = "Another template of {1} and {2}."
        operator["properties"]["arguments"] = ["x=__import__('os')", "a\nb|c"]
        for result in run["results"]:
            if result["ruleId"] == "OXP1001":
                result["ruleId"] = "OXP1999"
                result["message"]["text"] = "It says 'x.sum() < 0' anew."

    path = saved(failed(source), change)
    first, *_ = read_log(path).findings
    assert first.rule == Recorded("OXP1999", "NewerRule", "It says '{0}' anew.", ("condition",), ("x.sum() < 0",))
    _, *others = read_log(path).findings
    texts = {finding.rule.id: finding.message for finding in (*failed(source).findings, *others)}
    report = run(str(path)).stdout
    assert "### Error OXP1999: NewerRule\n\nIt says `x.sum() < 0` anew.\n" in report
    assert texts["OXP1007"].partition("'")[0] in report

    def forget(run: Mapping[str, Any]) -> None:
        run["tool"]["driver"]["rules"].clear()

    message = DataDependentBranch(condition="x.sum() < 0")
    assert f"### Error OXP1001: OXP1001\n\n{message}".replace("<", r"\<") in run(str(saved(failed(source), forget))).stdout


def test_any_text_makes_the_same_report(source: str) -> None:
    made = context()
    at = Location(source, Region(4), HOSTILE, HOSTILE, HOSTILE)
    with contextlib.suppress(ExportFailed), made.stage(HOSTILE):
        made.event(HOSTILE)
        raise made.fail(
            UnsupportedOverload(operator=HOSTILE, problem="{0} {7} {x}", supported=(HOSTILE,)),
            at=Evidence(at, (at, at), related=(at,)),
            notes=[HOSTILE],
            fixes=[Fix(HOSTILE, Confidence.GUESS, snippet=HOSTILE)],
            cause=RuntimeError(HOSTILE),
        )
    log = made.log()
    assert markdown.to_markdown(read_log(saved(log))) == markdown.to_markdown(log)


def test_what_others_suppressed_stays_suppressed(source: str) -> None:
    def change(run: Mapping[str, Any]) -> None:
        for result in run["results"]:
            del result["locations"]
            result["suppressions"] = [{"kind": "external", "status": "accepted"}]

    assert read_log(saved(with_options(source), change)).succeeded
    assert run(str(saved(with_options(source), change))).exit_code == 0


def broken(source: str, *keys: str | int, value: object) -> str:
    content = json.loads(sarif.to_json(failed(source)))
    item = content
    for key in keys[:-1]:
        item = item[key]
    item[keys[-1]] = value
    return json.dumps(content)


NO_LOGS: dict[str, Callable[[str], str | None]] = {
    "missing": lambda source: None,
    "empty": lambda source: "",
    "truncated": lambda source: sarif.to_json(failed(source))[:-200],
    "no JSON": lambda source: SOURCE,
    "no object": lambda source: "[]",
    "no SARIF": lambda source: "{}",
    "nested": lambda source: "[" * 100_000,
    "newer": lambda source: broken(source, "version", value="2.2.0"),
    "another tool's": lambda source: broken(source, "runs", 0, "tool", "driver", "name", value="ruff"),
    "of no run": lambda source: broken(source, "runs", value=[]),
    "no results": lambda source: broken(source, "runs", 0, "results", value=None),
    "no line": lambda source: broken(source, "runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine", value="6"),
    "end before start": lambda source: broken(
        source, "runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", value={"startLine": 6, "endLine": 3}
    ),
    "no level": lambda source: broken(source, "runs", 0, "results", 0, "level", value="fatal"),
    "no time": lambda source: broken(source, "runs", 0, "invocations", 0, "startTimeUtc", value="today"),
    "a date as the start": lambda source: broken(source, "runs", 0, "invocations", 0, "startTimeUtc", value="2020-01-01"),
    "a date as the end": lambda source: broken(source, "runs", 0, "invocations", 0, "endTimeUtc", value="2020-01-01"),
    "no text": lambda source: broken(source, "runs", 0, "results", 0, "message", "text", value={}),
    "a web page": lambda source: broken(source, "runs", 0, "originalUriBaseIds", "SRCROOT", "uri", value="https://example.com/"),
}


@pytest.mark.parametrize("kind", NO_LOGS)
def test_what_is_no_log_is_refused(kind: str, source: str) -> None:
    path = pathlib.Path("broken.sarif")
    text = NO_LOGS[kind](source)
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableLog):
        read_log(path)
    told = run(str(path))
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.count(str(path)) == 1
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(("error", "why"), [(OSError(28, "No space left", "x"), "No space left"), (OSError("a fault"), "a fault")])
def test_why_a_log_cannot_be_read(error: OSError, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pathlib.Path, "open", broken)
    with pytest.raises(UnreadableLog) as caught:
        read_log(pathlib.Path("broken.sarif"))
    assert str(caught.value).endswith(f": {why}")


def test_the_log_is_not_overwritten(source: str) -> None:
    path = saved(failed(source))
    assert run(str(path), "-o", str(path)).exit_code == 2
    assert read_log(path).findings
    assert run(str(path), "-o", str(path / "report.md")).exit_code == 1


def test_a_report_needs_no_heavy_library(source: str) -> None:
    program = f"""\
import sys
from onnxplain.cli import main
main(["report", {str(saved(failed(source)))!r}], standalone_mode=False)
assert not {{"torch", "numpy", "onnx", "onnx_ir", "onnxscript", "onnxruntime"}} & {{*sys.modules}}
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
