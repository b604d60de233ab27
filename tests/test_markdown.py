"""The markdown report: its words (golden files), and that nothing from a model can change its structure."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import re

import pytest
from markdown_it import MarkdownIt

from onnxplain.diagnostics import (
    Confidence,
    DiagnosticContext,
    DiagnosticOptions,
    Edit,
    Evidence,
    ExportFailed,
    Fix,
    Level,
    Location,
    Log,
    Region,
    Tool,
    markdown,
)
from onnxplain.rules import DataDependentBranch, InternalError, TrainingMode, UnsupportedOperator

GOLDEN = pathlib.Path(__file__).parent / "golden"
COMMENT_LIMIT = 65_536

SOURCE = """\
import torch


class Flip(torch.nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return -x
        return torch.linalg.foo(x)


model = Flip()  # onnxplain: ignore[OXP1007] Dropout is wanted here.
"""

HOSTILE = "`` ` ``` </details><img src=x onerror=alert(1)> [a](http://evil) **b** _c_ | # \x1b[31m \u202e"


@pytest.fixture
def source(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a source file in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "flip.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def context(options: DiagnosticOptions | None = None) -> DiagnosticContext:
    """A context whose clock goes on by an eighth of a second each time it is read."""
    clock = itertools.count(1_767_225_600, 0.125)
    made = DiagnosticContext(
        tool=Tool("onnxplain", "0.1.0", "https://example.com"),
        subject="Flip",
        options=options or DiagnosticOptions(),
        internal_error=lambda stage, error: InternalError(stage=stage, error=str(error)),
        clock=lambda: float(next(clock)),
        command_line="onnxplain export flip.py:model --report",
    )
    made.environment.update({"python": "3.11.7", "torch": "2.13.0+cpu"})
    return made


def failed(source: str) -> Log:
    """The log of an export with findings of all kinds."""
    at = Location(source, Region(6, 12, 6, 23), "forward", "blocks.0")
    stack = (Location(source, Region(11, 1, 11, 6), "<module>"), at)
    made = context(DiagnosticOptions(levels={"OXP3001": Level.WARNING}))
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        made.event("The strategy non-strict failed; strict is tried.")
        made.report(TrainingMode(layers=("dropout",)), at=Location(source, Region(11)))
        made.report(TrainingMode(layers=("dropout", "norm.0")), at=Location(source, Region(4)))
        made.report(
            UnsupportedOperator(operator="aten::foo", nearest="aten::fo_o"),
            at=Location(source, Region(8, 16, 8, 35), "forward", "blocks.0"),
            notes=["Inputs of the operator:\nx  float32[2, 3]", "No decomposition of `aten::foo` is known."],
            fixes=[Fix("Write the line with other operators.", Confidence.GUESS)],
        )
        raise made.fail(
            DataDependentBranch(condition="x.sum() < 0"),
            at=Evidence(at, stack, related=(Location(source, Region(4), message="The module is defined here"),)),
            fixes=[
                Fix(
                    "Choose by element with `torch.where`.",
                    Confidence.SAFE,
                    edits=(Edit(source, Region(6, 9, 8, 35), "return torch.where(x.sum() < 0, -x, torch.linalg.foo(x))"),),
                ),
                Fix("Keep both branches.", Confidence.CHANGES_BEHAVIOUR, snippet="torch.cond(x.sum() < 0, negative, positive, (x,))"),
            ],
            cause=RuntimeError("Could not guard on data-dependent expression Eq(u0, 1).\n\n```\nUser code\n```"),
        )
    return made.log()


def exported(folder: pathlib.Path) -> Log:
    """The log of an export without findings."""
    model = folder / "flip.onnx"
    model.write_bytes(b"\0" * 1_234_567)
    made = context()
    for stage in ("capture", "build", "serialize"):
        with made.stage(stage):
            pass
    made.wrote(model, "resultFile", "5f" * 32)
    return made.finish()


@pytest.mark.parametrize("name", ["failed", "exported"])
def test_golden(name: str, source: str, tmp_path: pathlib.Path) -> None:
    report = markdown.to_markdown(failed(source) if name == "failed" else exported(tmp_path))
    golden = GOLDEN / f"report_{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(report, encoding="utf-8", newline="\n")
    assert report == golden.read_text(encoding="utf-8")


def test_what_comes_from_a_model_is_text_only(source: str) -> None:
    made = context()
    at = Location(source, Region(4), HOSTILE, HOSTILE, HOSTILE)
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        made.event(HOSTILE)
        raise made.fail(
            UnsupportedOperator(operator=HOSTILE, nearest=""),
            at=Evidence(at, (at, at), related=(at,)),
            notes=[HOSTILE, f"{HOSTILE}\n{HOSTILE}"],
            fixes=[Fix(HOSTILE, Confidence.GUESS, snippet=HOSTILE), Fix("x", Confidence.GUESS, edits=(Edit(HOSTILE, Region(1), HOSTILE),))],
            cause=RuntimeError(HOSTILE),
        )
    report = markdown.to_markdown(made.log())
    assert "\x1b" not in report
    assert "\u202e" not in report
    tokens = [token for block in MarkdownIt().parse(report) for token in (block, *(block.children or ()))]
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert set(re.findall(r"</?\w+", html)) == {"<details", "</details", "<summary", "</summary"}
    assert not {token.type for token in tokens} & {"link_open", "image"}
    assert "alert(1)" not in html
    headings = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["The export of Flip failed in capture", "Findings", "Error OXP3001: UnsupportedOperator"]


def test_many_long_findings_fit_into_a_comment(source: str) -> None:
    made = context()
    with contextlib.suppress(ExportFailed), made.stage("dispatch"):
        for number in range(30):
            made.report(UnsupportedOperator(operator=f"aten::foo_{number}", nearest="aten::foo"), at=Location(source, Region(6)))
        for number in range(1000):
            made.event(f"Step {number}.")
        raise made.fail(DataDependentBranch(condition="x"), cause=RuntimeError("why " * 25_000))
    report = markdown.to_markdown(made.log())
    assert len(report) < COMMENT_LIMIT
    assert "characters are left out here" in report
    assert "earlier steps are left out here" in report
    assert report.count("### Error OXP3001") == 30


def test_every_place_of_a_folded_finding_is_told_or_counted(source: str) -> None:
    made = context()
    for line in range(1, 31):
        made._add(UnsupportedOperator(operator="aten::foo", nearest=""), Location(source, Region(1, line)))
    report = markdown.to_markdown(made.log())
    assert report.count("- Also at `flip.py:1:") == 10
    assert "- And at 19 more places" in report


def test_write_makes_folders_and_leaves_no_draft(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "reports" / "flip.md"
    markdown.write(exported(tmp_path), path)
    assert path.read_text(encoding="utf-8").startswith("# Exported Flip in ")
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_report(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "flip.md"
    path.write_text("old", encoding="utf-8")
    log = exported(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(pathlib.Path, "replace", refuse)
    with pytest.raises(PermissionError):
        markdown.write(log, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["flip.md", "flip.onnx"]
