"""The markdown report: its wording (golden files), its size, and that no text of a model can change its structure."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Callable, Iterable

import pytest
from logs import context, exported, failed, hostile
from markdown_it import MarkdownIt

from onnxplain.diagnostics import (
    Confidence,
    DiagnosticContext,
    Difference,
    Evidence,
    ExportFailed,
    Fix,
    Graph,
    Location,
    Node,
    Region,
    Stage,
    markdown,
)
from onnxplain.rules import DataDependentBranch, InternalError, TrainingMode, UnsupportedOperator

COMMENT_LIMIT = 65_536


@pytest.mark.parametrize("name", ["failed", "exported"])
def test_golden(name: str, source: str, tmp_path: pathlib.Path, golden: Callable[[str, str], None]) -> None:
    golden(f"report_{name}.md", markdown.to_markdown(failed(source) if name == "failed" else exported(tmp_path)))


def test_what_comes_from_a_model_is_text_only(source: str) -> None:
    report = markdown.to_markdown(hostile(source))
    assert "\x1b" not in report
    assert "\u202e" not in report
    tokens = [token for block in MarkdownIt().parse(report) for token in (block, *(block.children or ()))]
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert set(re.findall(r"</?\w+", html)) == {"<details", "</details", "<summary", "</summary"}
    assert not {token.type for token in tokens} & {"link_open", "image"}
    assert "alert(1)" not in html
    picture, chart = (token.content for token in tokens if token.type == "fence" and token.info == "mermaid")
    axes = r'    x-axis "[a-z ,]+" 1 --> 2\n    y-axis "[a-z0-9 ,]+" -9 --> 1\n'
    assert re.fullmatch(rf"xychart-beta\n{axes}(    line \[[-.\d, ]+\]\n?){{2}}", chart)
    first, node, other, edge, style = picture.splitlines()
    label = r"""\["([A-Za-z0-9_ .,()\[\]=]|#\d+;|<br>)+"\]"""
    assert re.fullmatch(rf"    n0{label}:::blamed", node)
    assert re.fullmatch(rf"    n1{label}", other)
    assert (first, edge, style[:20]) == ("flowchart TD", "    n0 --> n1", "    classDef blamed ")
    headings = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["The export of Flip failed in capture", "Findings", "Error OXP3001: UnsupportedOperator"]


def test_many_long_findings_fit_into_a_comment(source: str) -> None:
    made = context()
    with contextlib.suppress(ExportFailed), made.stage("dispatch"):
        for number in range(30):
            made.report(UnsupportedOperator(operator=f"aten::foo_{number}"), at=Location(source, Region(6)))
        for number in range(1000):
            made.event(f"Step {number}.")
        raise made.fail(DataDependentBranch(condition="x"), cause=RuntimeError("why " * 25_000))
    report = markdown.to_markdown(made.log())
    assert len(report) < COMMENT_LIMIT
    omitted = {what: int(number.replace(",", "")) for number, what in re.findall(r"\[([\d,]+) (characters|earlier steps)", report)}
    assert omitted.keys() == {"characters", "earlier steps"}
    assert 92_000 <= omitted["characters"] <= 92_100
    assert report.count("### Error OXP3001") == 30


def long_finding(made: DiagnosticContext, number: int, source: str, text: str) -> None:
    at = Location(source, Region(6), text, text)
    nodes = tuple(Node(f"{index}{text}", text, text) for index in range(12))
    graph = Graph(nodes, tuple((nodes[0].id, node.id) for node in nodes), nodes[0].id)
    made.report(
        UnsupportedOperator(operator=f"{number}{text}"),
        at=Evidence(at, (at, at), related=(at,) * 20, node=graph),
        notes=[text] * 3,
        fixes=[Fix(text, Confidence.GUESS, snippet=text)],
        cause=RuntimeError(text),
    )


@pytest.mark.parametrize("text", ["x", "|*" * 300, "模型" * 1_000], ids=["short", "escaped", "wide"])
def test_any_number_of_findings_of_any_length_is_shown_or_counted(source: str, text: str) -> None:
    made = context()
    for number in range(5):
        long_finding(made, number, source, text)
        made.report(TrainingMode(layers=(f"{number}{text}",)), at=Location(source, Region(11)))
    made.environment["text"] = text
    log = made.log()
    report = markdown.to_markdown(dataclasses.replace(log, findings=log.findings * 100))
    assert len(report.encode("utf-16-le")) // 2 < COMMENT_LIMIT
    whole, brief = report.count("### Error OXP3001"), report.count("- Error OXP3001")
    assert whole >= 1
    left_out = re.findall(r"^- And (\d+) more, omitted", report, re.MULTILINE)
    assert [500 - whole - brief, 500 - report.count("- Warning OXP1007")] == list(map(int, left_out))


def test_notes_beyond_the_limit_are_counted(source: str) -> None:
    def lines(count: int) -> int:
        made, notes = context(), tuple(f"Note {number}." for number in range(count))
        made.report(DataDependentBranch(condition="x"), at=Location(source, Region(6)), notes=notes)
        return sum("Note " in line or "more notes" in line for line in markdown.to_markdown(made.log()).splitlines())

    assert [lines(count) for count in (0, 1, 99, 100, 101, 300)] == [0, 1, 99, 100, 101, 101]


def test_a_table_is_filled_to_its_limit() -> None:
    def rows(*lengths: int) -> list[int]:
        made = context()
        for number, length in enumerate(lengths):
            made.report(UnsupportedOperator(operator=f"{number:02}{'x' * (length - 2)}"))
        return [len(line) for line in markdown.to_markdown(made.log()).splitlines() if re.match(r"\|.*\dxx", line)]

    (beside,) = (length - 100 for length in rows(100))
    whole = 5_000 // (100 + beside) - 1
    rest = 5_000 - whole * (100 + beside) - beside
    assert len(rows(*[100] * whole, rest)) == whole + 1
    assert len(rows(*[100] * whole, rest + 1)) == whole


LONG: dict[str, tuple[int, Callable[[DiagnosticContext, str], object]]] = {
    "block": (8_000, lambda made, text: made.report(InternalError(stage="", error=""), notes=[f"Two lines:\n{text}"])),
    "sentence": (2_000, lambda made, text: made.report(InternalError(stage="", error=""), notes=[text])),
    "code": (500, lambda made, text: made.report(DataDependentBranch(condition=text))),
    "cell": (200, lambda made, text: made.report(UnsupportedOperator(operator=text))),
    "label": (60, lambda made, text: made.report(InternalError(stage="", error=""), at=Evidence(node=Graph((Node("a", text),), (), "a")))),
}


@pytest.mark.parametrize(("limit", "report"), LONG.values(), ids=LONG)
def test_a_text_is_whole_up_to_its_limit(limit: int, report: Callable[[DiagnosticContext, str], object]) -> None:
    for length, omitted in ((limit, []), (limit + 1, ["1"])):
        made = context()
        report(made, "x" * length)
        assert re.findall(r"(\d+) characters omitted", markdown.to_markdown(made.log())) == omitted


def test_every_place_of_a_folded_finding_is_shown_or_counted(source: str) -> None:
    made = context()
    for line in range(1, 31):
        made.report(UnsupportedOperator(operator="aten::foo"), at=Location(source, Region(1, line)))
    report = markdown.to_markdown(made.log())
    assert report.count("- Also at `flip.py:1:") == 10
    assert "- And at 19 more places" in report


def test_every_place_in_a_table_is_shown_or_counted(source: str) -> None:
    made = context()
    for operator, count in (("aten::foo", 9), ("aten::bar", 1)):
        for line in range(1, count + 1):
            made.report(UnsupportedOperator(operator=operator), at=Location(source, Region(1, line)))
    first, second = re.findall(r"^\| `aten::\w+` \|.*$", markdown.to_markdown(made.log()), re.MULTILINE)
    assert (first.count("flip.py"), ", 4 more" in first) == (5, True)
    assert (second.count("flip.py"), "more" in second) == (1, False)


@pytest.mark.parametrize(("deep", "shallow"), [(30, 30), (31, 1)])
def test_a_table_of_layers_is_as_deep_as_it_stays_short(deep: int, shallow: int) -> None:
    def rows(modules: Iterable[str]) -> int:
        return len(markdown.layer_rows([Difference("node", "Add", module, 1, 0.5, 0.5, 0.1) for module in modules]))

    assert rows(f"net.layer{number}" for number in range(deep)) == shallow
    assert rows(f"layer{number}" for number in range(40)) == 40


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


HINTS = """\
RuntimeError: Could not guard on data-dependent expression Eq(u0, 1).

Caused by: if n > 3  # model.py:19 in forward
For more information, run with TORCH_LOGS="dynamic"
For more debugging help, see https://docs.google.com/document/d/1HSuTT/edit

For C++ stack trace, run with TORCHDYNAMO_EXTENDED_DEBUG_CPP=1

The following call raised this error:
  For C++ stack trace, in the user's code
"""


def test_hints_of_torch_are_apart_from_the_cause() -> None:
    (cause, told), (_, hints) = markdown.causes(HINTS)
    assert cause == "Cause"
    assert [line for line in told.splitlines() if "TORCH" in line or "https" in line] == []
    assert told.splitlines()[-2:] == HINTS.splitlines()[-2:]
    assert "\n\n\n" not in told
    assert len(hints.splitlines()) == 3
    assert markdown.causes("") == []


def test_stages_that_took_no_time_have_no_row(source: str) -> None:
    log = exported(pathlib.Path(source).parent)
    quick = dataclasses.replace(log, stages=(*log.stages, Stage("optimize", 0.0004, True), Stage("verify", 0.0, False)))
    rows = {name: (seconds, remark) for name, seconds, _, remark in markdown.times(quick)}
    assert "optimize" not in rows
    assert rows["verify"] == ("under 0.001", "failed")
    assert "0.000" not in markdown.to_markdown(quick)


def test_findings_come_before_the_times(source: str) -> None:
    report = markdown.to_markdown(failed(source))
    assert report.index("## Findings") < report.index("<details><summary>Stage times")
    assert report.rstrip().endswith("</details>")
