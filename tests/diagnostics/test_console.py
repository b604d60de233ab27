"""Findings on a terminal."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from logs import SOURCE, context, exported, failed
from rich.console import Console

from onnxplain.diagnostics import (
    Confidence,
    DiagnosticOptions,
    Edit,
    Evidence,
    ExportFailed,
    Fix,
    Location,
    Log,
    LogNotSaved,
    Region,
    console,
    excerpt,
    make_console,
    sha256,
)
from onnxplain.rules import DataDependentBranch, TrainingMode, UnsupportedOperator


def shown(log: Log, **options: Any) -> str:
    """What the console shows of `log`."""
    file = io.StringIO()
    console.show_log(log, Console(file=file, **options))
    return file.getvalue()


@pytest.mark.parametrize("name", ["failed", "exported"])
def test_golden(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "flip.py"
    source.write_text(SOURCE, encoding="utf-8")
    log = failed(str(source)) if name == "failed" else exported(tmp_path)
    golden(f"terminal_{name}.txt", shown(log))


def with_finding(here: pathlib.Path, **arguments: Any) -> Log:
    """A log with one finding, in a file whose line has tabs and wide characters."""
    file = here / "wide.py"
    file.write_text('\ty = table["表"] + missing(x)\n', encoding="utf-8")
    made = context()
    place = Location(str(file), Region(1, 19, 1, 29), "forward")
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        raise made.fail(DataDependentBranch(condition="x > 0"), at=place, **arguments)
    return made.log()


def test_the_caret_stands_under_the_code(here: pathlib.Path) -> None:
    code, caret = shown(with_finding(here)).splitlines()[2:4]
    # Each of the two wide characters takes two columns.
    assert caret.index("^") == code.index("missing") + 1
    assert caret.count("^") == len("missing(x)")


def test_an_edit_is_shown_as_whole_lines(here: pathlib.Path) -> None:
    edit = Edit(str(here / "wide.py"), Region(1, 19, 1, 26), "present")
    text = str(with_finding(here, fixes=[Fix("Call the other.", Confidence.SAFE, edits=(edit,))]).findings[0])
    assert '   - \ty = table["表"] + missing(x)\n   + \ty = table["表"] + present(x)' in text


def test_an_edit_of_whole_lines_shows_them_as_they_become(here: pathlib.Path) -> None:
    edit = Edit(str(here / "wide.py"), Region(1), "\ty = present(x)")
    assert edit.as_snippet() == "y = present(x)"
    text = str(with_finding(here, fixes=[Fix("Call the other.", Confidence.SAFE, edits=(edit,))]).findings[0])
    assert '   - \ty = table["表"] + missing(x)\n   + \ty = present(x)' in text


def test_what_comes_from_a_model_steers_no_terminal(here: pathlib.Path) -> None:
    hostile = "\x1b[2J\x07 [red]x[/red] :smile: \u202e \udc80"
    log = with_finding(here, notes=[hostile], fixes=[Fix(hostile, Confidence.GUESS, snippet=hostile)])
    text = shown(log, force_terminal=True, color_system=None)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\udc80]", text)
    assert text.count("\\x1b[2J\\x07 [red]x[/red] :smile: \\u202e \\udc80") == 3


@pytest.mark.parametrize("width", [10, 80])
def test_no_line_depends_on_the_width(width: int, here: pathlib.Path) -> None:
    log = with_finding(here, notes=["long " * 50 + "note"])
    assert shown(log, width=width) == shown(log, width=1000)


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.make_console().color_system is not None
    monkeypatch.setenv("NO_COLOR", "1")
    assert console.make_console().color_system is None
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    made = console.make_console()
    made.print("[bold]" + "wide " * 50)
    assert sys.stdout.getvalue() == "wide " * 50 + "\n"  # type: ignore[attr-defined]


def test_suppressed_findings_and_events_are_shown_at_debug_only(here: pathlib.Path) -> None:
    file = here / "models.py"
    file.write_text("model = 1  # onnxplain: ignore[OXP1007] on purpose\n", encoding="utf-8")
    for verbosity, expected in ((20, False), (10, True)):
        made = context(DiagnosticOptions(verbosity_level=verbosity))
        with made.stage("capture"):
            made.event("A step.")
            made.report(TrainingMode(layers=("dropout",)), at=Location(str(file), Region(1)))
        text = shown(made.finish())
        assert ("OXP1007" in text, "A step." in text) == (expected, expected)
        assert text.count("on purpose\n") == 2 * expected, "in the line, and as the reason"
        assert "(1 suppressed" in text


def place(folder: pathlib.Path, line: int, name: str = "wide.py", **more: str) -> Location:
    return Location(str(folder / name), Region(line), **more)


@pytest.mark.parametrize(("count", "named", "rest"), [(1, 0, 0), (2, 1, 0), (6, 5, 0), (7, 5, 1), (9, 5, 3)])
def test_other_places_are_counted_from_the_sixth(here: pathlib.Path, count: int, named: int, rest: int) -> None:
    made = context()
    for number in range(1, count + 1):
        made.report(UnsupportedOperator(operator="aten::foo"), at=place(here, number))
    (finding,) = made.log().findings
    _, *others = re.findall(r"wide\.py:(\d+)", str(finding))
    assert others == [str(number) for number in range(2, named + 2)]
    assert [int(each) for each in re.findall(r"(\d+) more", str(finding))] == [rest][: bool(rest)]


def test_callers_are_the_innermost_four_other_lines(here: pathlib.Path) -> None:
    at, other = place(here, 1, function="blamed"), place(here, 1, "other.py", function="caller9")
    stack = (*(place(here, number, function=f"caller{number}") for number in range(2, 9)), other, at)
    related = (place(here, 5, message="The reason"), place(here, 6))
    made = context()
    made.report(DataDependentBranch(condition="x"), at=Evidence(at, stack, related=related))
    (finding,) = made.log().findings
    assert re.findall(r"caller(\d)", str(finding)) == ["9", "8", "7", "6"]
    assert re.findall(r": (The reason: )?wide\.py:(\d)$", str(finding), re.MULTILINE) == [("The reason: ", "5"), ("", "6")]


def test_lines_of_notes_and_snippets(here: pathlib.Path) -> None:
    edit = Edit(str(here / "wide.py"), Region(1, 1, 1, 2), "edited")
    fixes = [Fix("Paste it.", Confidence.SAFE, snippet="first\nsecond", edits=(edit,)), Fix("Think.", Confidence.GUESS)]
    text = str(with_finding(here, notes=["one\ntwo", ""], fixes=fixes).findings[0])
    assert [line for line in text.splitlines() if re.search("two|first|second|edited", line)] == [
        "   |   two",
        "   |   first",
        "   |   second",
    ]
    assert re.findall(r"fix \(([^)]*)\)", text) == ["safe", "guess"]


@pytest.mark.parametrize(
    ("at", "text", "underline"),
    [
        (Region(1, 5, 1, 8), "    abc  # é", "    ^^^"),
        (Region(1), "    abc  # é", "    ^^^^^^^^"),
        (Region(1, 5), "    abc  # é", "    ^^^^^^^^"),
        (Region(1, 5, 2, 3), "    abc  # é", "    ^^^^^^^^"),
        (Region(1, 5, 1, 5), "    abc  # é", "    ^"),
        (Region(2, 2, 2, 3), "    x", "    ^"),
        (Region(3), None, None),
        (Region(9), None, None),
        (None, None, None),
    ],
)
def test_the_line_of_a_place(here: pathlib.Path, at: Region | None, text: str | None, underline: str | None) -> None:
    (here / "some.py").write_text("    abc  # é  \n\tx\n\n", encoding="utf-8")
    spans = list(excerpt(Location(str(here / "some.py"), at), "error"))
    assert spans[0][1][1] == "place"
    if text is None:
        assert len(spans) == 1
        return
    ((gutter, _), (line, _)), ((margin, _), (marks, role)) = spans[1:]
    assert (line, marks, role) == (text, underline, "error")
    assert (gutter, len(margin)) == (f" {at.line if at else 0} | ", len(gutter))


def test_what_the_console_lists(here: pathlib.Path) -> None:
    made = context(DiagnosticOptions(verbosity_level=10))
    made.event("outside\nof stages")
    with made.stage("capture"):
        made.event("inside")
        made.report(TrainingMode(layers=("a",)), at=place(here, 1))
        made.report(UnsupportedOperator(operator="aten::foo"), at=place(here, 2))
        made.report(TrainingMode(layers=("b",)), at=place(here, 3))
    (here / "model.onnx").write_bytes(b"onnx")
    made.wrote(here / "model.onnx", "resultFile", sha256(here / "model.onnx"))
    file = io.StringIO()
    console.show_log(made.log(), Console(file=file), {"log": here / "model.sarif"})
    text = file.getvalue()
    assert [line for line in text.splitlines() if line.startswith(("export: ", "capture: "))] == [
        "export: outside",
        "export: of stages.",
        "capture: inside.",
    ]
    assert re.findall(r"^  (\w+) +(\S+)$", text, re.MULTILINE) == [("model", "model.onnx"), ("log", "model.sarif")]
    assert text.rstrip().splitlines()[-1].count("OXP1007") == 1
    assert text.rstrip().splitlines()[-1].index("OXP1007") < text.rstrip().splitlines()[-1].index("OXP3001")


def test_the_exceptions_tell_what_failed(here: pathlib.Path) -> None:
    log = with_finding(here)
    failed = ExportFailed(log)
    assert failed.findings == log.findings
    assert str(failed) == f"{log.findings[0]}\n{log.summary}"
    text = str(LogNotSaved(log, OSError("disk \x1b full")))
    assert "disk \\x1b full" in text.splitlines()[0]
    assert text.endswith(str(log.findings[0]))


def test_a_printed_log_has_its_findings_and_outcome(here: pathlib.Path) -> None:
    log = with_finding(here)
    *findings, outcome = str(log).split("\n\n")
    assert "\n\n".join(findings) == "\n\n".join(map(str, log.findings))
    assert outcome == f"{log.verdict}: {log.summary}"


def test_where_the_model_has_closed_the_standard_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    make_console().print("told")
    assert capsys.readouterr().err == "told\n"
