"""Findings and logs as results of the cells of a notebook. The cells themselves are in tests/face, since they need IPython."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Callable

import pytest
from logs import context, exported, failed

from onnxplain.diagnostics import Evidence, ExportFailed, Location, Log, Region, Stage, markdown
from onnxplain.rules import DataDependentBranch, TrainingMode


def of_findings(source: str, count: int) -> Log:
    """The log of a failed export with `count` findings, of which the first is a warning."""
    made = context()
    made.report(TrainingMode(layers=("dropout",)), at=Location(source, Region(4)))
    for number in range(count - 1):
        made.report(DataDependentBranch(condition=f"x{number}"), at=Location(source, Region(6)))
    return made.log()


@pytest.mark.parametrize("name", ["failed", "exported"])
def test_golden(name: str, source: str, tmp_path: pathlib.Path, golden: Callable[[str, str], None]) -> None:
    log = failed(source) if name == "failed" else exported(tmp_path)
    golden(f"notebook_{name}.html", log._repr_html_().replace("<div>", "\n<div>").replace("<br>", "<br>\n") + "\n")


def test_a_finding_is_shown_as_in_the_report(source: str) -> None:
    for finding in failed(source).findings:
        shown = finding._repr_markdown_()
        title, *_ = shown.splitlines()
        assert finding.rule.id in title
        assert title in markdown.to_markdown(failed(source))


@pytest.mark.parametrize(("count", "left_out"), [(19, []), (20, []), (21, ["1"]), (1_025, ["1,005"])])
def test_twenty_findings_are_shown_and_the_others_counted(source: str, count: int, left_out: list[str]) -> None:
    log = of_findings(source, count)
    shown = log._repr_html_()
    assert shown.count("<pre") == min(count, 20)
    *_, told = re.findall("<p>.*?</p>", shown)
    assert re.findall(r"(?<= )[\d,]+(?= more)", told) == left_out
    lines = ExportFailed(log)._render_traceback_()
    assert sum(bool(re.search(r"\[OXP\d+\]", line)) for line in lines) == min(count, 20)


def test_a_traceback_begins_with_what_failed_the_export(source: str) -> None:
    lines = ExportFailed(of_findings(source, 3))._render_traceback_()
    assert [found[0] for line in lines if (found := re.findall(r"OXP\d+", line))] == ["OXP1001", "OXP1001", "OXP1007"]


def test_a_call_stack_is_shown_where_it_has_several_lines(source: str) -> None:
    frames = tuple(Location(source, Region(line), f"function_{line}") for line in (11, 6))
    for stack, folds in ((frames[:1], 0), (frames, 1)):
        made = context()
        made.report(DataDependentBranch(condition="x"), at=Evidence(frames[-1], stack))
        assert made.log().findings[0]._repr_html_().count("<details>") == folds


def test_stages_that_took_no_time_have_no_row(source: str) -> None:
    log = dataclasses.replace(exported(pathlib.Path(source).parent), stages=(Stage("a", 0.0005, True), Stage("b", 0.0004, True)))
    assert re.findall("<tr><td>(.*?)</td>", log._repr_html_()) == ["a"]
