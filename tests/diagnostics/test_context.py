"""What a context makes of reports: levels, limits, and equal findings that become one."""

from __future__ import annotations

import dataclasses
import pathlib
import re

import pytest
from logs import GRAPH, context, failed
from sarif_logs import at, source

from onnxplain.diagnostics import DiagnosticOptions, Evidence, Level, Location, markdown, visible
from onnxplain.rules import DataDependentBranch, TrainingMode


@pytest.mark.parametrize(
    ("options", "level"),
    [
        (DiagnosticOptions(), Level.WARNING),
        (DiagnosticOptions(levels={"OXP1": Level.NOTE, "OXP1007": Level.ERROR, "OXP10": Level.WARNING}), Level.ERROR),
        (DiagnosticOptions(warnings_as_errors=True), Level.ERROR),
        (DiagnosticOptions(warnings_as_errors=True, levels={"OXP1": Level.NOTE}), Level.NOTE),
        (DiagnosticOptions(select=("OXP2",)), None),
        (DiagnosticOptions(ignore=("OXP",)), None),
        (DiagnosticOptions(select=("OXP1", "OXP1007"), ignore=("OXP100",)), Level.WARNING),
        (DiagnosticOptions(select=("OXP1", "OXP100"), ignore=("OXP1", "OXP1007")), None),
        (DiagnosticOptions(select=("OXP100",), ignore=("OXP100",)), None),
    ],
)
def test_the_longest_prefix_decides(options: DiagnosticOptions, level: Level | None) -> None:
    made = context(options)
    made.report(TrainingMode(layers=("dropout",)))
    assert [finding.level for finding in made.log().findings] == ([] if level is None else [level])


@pytest.mark.parametrize("blocking", [False, True])
def test_equal_findings_are_one_with_the_graph_of_the_first(tmp_path: pathlib.Path, blocking: bool) -> None:
    made, place = context(), at(source(tmp_path), "x.sum()")
    made.report(DataDependentBranch(condition="x"), at=Evidence(place, node=GRAPH), notes=["Once."])
    other = dataclasses.replace(GRAPH, blamed="linear_1")
    made.report(DataDependentBranch(condition="x"), at=Evidence(place, node=other), notes=["Once.", "Twice."], blocking=blocking)
    (finding,) = made.log().findings
    assert (finding.graph, finding.blocking) == (GRAPH, blocking)
    assert sorted(finding.notes) == ["Once.", "Twice."]


def test_long_texts_are_shortened(tmp_path: pathlib.Path) -> None:
    made = context()
    made.report(TrainingMode(layers=("a",)), at=Location(source(tmp_path)), notes=["x" * 20_000, "y" * 20_001])
    (finding,) = made.log().findings
    assert finding.notes[0] == "x" * 20_000
    assert finding.notes[1].count("y") < 20_001


def test_a_text_that_is_shortened_twice_tells_how_much_it_lost() -> None:
    made = context()
    made.report(TrainingMode(layers=("a",)), notes=["y" * 50_001])
    (finding,) = made.log().findings
    for text in (finding.notes[0], visible(finding.notes[0])):
        (number,) = re.findall(r"\d[\d,]*", text)
        assert int(number.replace(",", "")) + text.count("y") == 50_001


def test_a_report_makes_the_folders_above_it(tmp_path: pathlib.Path) -> None:
    log = failed(source(tmp_path))
    path = tmp_path / "reports" / "today" / "net.md"
    for _ in range(2):
        markdown.write(log, path)
    assert path.read_text(encoding="utf-8") == markdown.to_markdown(log)
