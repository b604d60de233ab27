"""What a context makes of reports: levels, limits, and equal findings that become one."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import re

import pytest
from logs import GRAPH, context, failed
from sarif_logs import at, source

from onnxplain.diagnostics import (
    DiagnosticContext,
    DiagnosticOptions,
    Edit,
    Evidence,
    ExportFailed,
    Level,
    Location,
    Region,
    Tool,
    markdown,
    visible,
)
from onnxplain.rules import DataDependentBranch, ExportCutShort, InternalError, TrainingMode


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


@pytest.mark.parametrize(("length", "shown"), [(10_000, [10_000]), (10_001, [5_000, 5_000])])
def test_a_long_line_is_shown_without_its_middle(length: int, shown: list[int]) -> None:
    made = context()
    made.report(TrainingMode(layers=("a",)), notes=["y" * length])
    (finding,) = made.log().findings
    assert list(map(len, re.findall("y{9,}", str(finding)))) == shown


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


def test_stages_are_told_as_they_begin() -> None:
    told: list[str] = []
    made = DiagnosticContext(
        tool=Tool("onnxplain", "0.1.0", "https://example.com"),
        subject="Net",
        options=DiagnosticOptions(),
        internal_error=lambda stage, error: InternalError(stage=stage, error=str(error)),
        cut_short=lambda stage, reason: ExportCutShort(stage=stage, reason=reason),
        on_stage=told.append,
    )
    for name in ("capture", "passes"):
        with made.stage(name):
            assert told[-1] == name
    with pytest.raises(ExportFailed), made.stage("build"):
        raise KeyError("x")
    assert told == ["capture", "passes", "build"]
    assert [(stage.name, stage.completed) for stage in made.log().stages] == [("capture", True), ("passes", True), ("build", False)]


class Following:
    """What a context tells who follows the export."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def began(self, stage: str) -> None:
        self.told.append(stage)

    def found(self) -> None:
        self.told.append("found")


def test_who_follows_an_export_hears_of_stages_and_new_findings() -> None:
    made = context(DiagnosticOptions(ignore=("OXP1001",)))
    following = made.watcher = Following()
    with made.stage("capture"):
        made.report(TrainingMode(layers=("a",)))
        made.report(TrainingMode(layers=("a",)))
        made.report(DataDependentBranch(condition="x"))
        made.report(TrainingMode(layers=("b",)))
    with made.stage("passes"):
        pass
    assert following.told == ["capture", "found", "found", "passes"]
    assert any("OXP1001" in event.text for event in made.log().events)


def test_the_first_cause_of_blocking_findings_is_the_cause() -> None:
    first, second = KeyError("first"), ValueError("second")

    def run() -> None:
        made = context()
        with made.stage("capture"):
            made.report(TrainingMode(layers=("a",)), cause=TypeError())
            made.report(TrainingMode(layers=("b",)), cause=first, blocking=True)
            made.report(TrainingMode(layers=("c",)), cause=second, blocking=True)
            raise made.stop()

    with pytest.raises(ExportFailed) as stopped:
        run()
    assert stopped.value.cause is first
    with pytest.raises(AssertionError):
        context().stop()


@pytest.mark.parametrize("blocking", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("tells", [0, 1])
def test_equal_findings_are_one_that_knows_what_each_told(blocking: tuple[bool, bool], tells: int) -> None:
    made = context()
    for number in range(2):
        cause = KeyError("why") if number == tells else None
        made.report(TrainingMode(layers=("a",)), notes=[f"{number}"], cause=cause, blocking=blocking[number])
    (found,) = made.log().findings
    assert (found.count, set(found.notes), found.blocking, "KeyError" in found.cause) == (2, {"0", "1"}, any(blocking), True)


def test_a_line_is_blocked_by_a_blocking_finding_there() -> None:
    made, blocked, other = context(), Location("model.py", Region(3, 1)), Location("model.py", Region(4, 1))
    made.report(TrainingMode(layers=("a",)), at=other)
    made.report(DataDependentBranch(condition="x"), at=blocked, blocking=True)
    made.report(DataDependentBranch(condition="y"), blocking=True)
    assert made.is_blocked_at(Location("model.py", Region(3, 9)))
    assert not any(map(made.is_blocked_at, (other, Location("other.py", Region(3, 1)), None)))


def test_what_was_reported_of_a_rule() -> None:
    made = context()
    made.report(TrainingMode(layers=("first",)))
    made.report(InternalError(stage="", error=""))
    made.report(TrainingMode(layers=("second",)))
    assert [rule.layers for rule in made.reported(TrainingMode)] == [("first",), ("second",)]


def test_an_edit_as_a_snippet_starts_at_the_margin() -> None:
    assert Edit("net.py", Region(7, 9), "if x:\n            y = x").as_snippet() == "if x:\n    y = x"


@pytest.mark.parametrize(("level", "kept"), [(logging.DEBUG, 3), (logging.INFO, 2), (logging.WARNING, 1), (logging.ERROR, 0)])
def test_events_below_the_verbosity_are_left_out(level: int, kept: int) -> None:
    made = context(DiagnosticOptions(verbosity_level=level))
    for each in (logging.DEBUG, logging.INFO, logging.WARNING):
        made.event(f"It happened at {each}", each)
        made.event("  ", each)
    assert [event.level for event in made.log().events] == [logging.DEBUG, logging.INFO, logging.WARNING][3 - kept :]
    assert all(event.text.endswith(".") and not event.text.endswith("..") for event in made.log().events)
