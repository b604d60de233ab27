"""The page for browsers: what it shows of one and of many logs, that no text breaks out of it, and that it opens fast."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html.parser
import json
import logging
import pathlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from logs import HOSTILE, context, exported, failed, hostile
from markdown_it import MarkdownIt
from readers import node, viewer

from onnxplain.diagnostics import (
    DIFFERENCES,
    REPRO,
    Attachment,
    Confidence,
    Difference,
    Edit,
    Evidence,
    ExportFailed,
    Fix,
    Graph,
    Location,
    Log,
    Node,
    Region,
    differences_text,
    is_page,
    job_summary,
    read_logs,
    sarif,
    to_html,
)
from onnxplain.diagnostics import html as pages
from onnxplain.rules import DataDependentBranch, TrainingMode, UnsupportedOperator

BREAKOUT = "</script><script>document.title='broken'</script><!-- <img src=x onerror=\"document.title='broken'\"> ' \" & \u2028 \u202e"

OPEN_ALL = "for (let k = 0; k < 5; k++) for (const each of document.querySelectorAll('details')) each.open = true;"
"""Opens every fold. The page fills a fold in the event of its opening, so that folds within folds need another round."""


def content(page: str) -> dict[str, Any]:
    """The data in a page."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return dict(json.loads(found))


class Elements(html.parser.HTMLParser):
    """The elements of a page, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self._silent = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.texts.append(data)


@functools.cache
def _browser() -> str:
    try:
        return viewer.find_browser()
    except node.Missing as error:
        pytest.skip(str(error))


def opened(page: str, folder: pathlib.Path) -> str:
    """The elements that a browser makes of `page`."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", f"--user-data-dir={folder / 'profile'}")
    done = subprocess.run([_browser(), *options, "--dump-dom", path.as_uri()], capture_output=True, encoding="utf-8", check=True)
    return done.stdout


def broken(model: str, source: str, operator: str = "aten::foo", line: int = 6) -> Log:
    """The log of a failed export of `model`."""
    made = context()
    made.subject = model
    with contextlib.suppress(ExportFailed), made.stage("dispatch"):
        made.report(TrainingMode(layers=(model,)), at=Location(source, Region(4)))
        raise made.fail(UnsupportedOperator(operator=operator), at=Location(source, Region(line)))
    return made.log()


def clean(model: str) -> Log:
    made = context()
    made.subject = model
    with made.stage("capture"):
        pass
    return made.log()


def causes(page: str) -> list[tuple[str, str, int, int]]:
    return [(each["rule"], each["where"], each["blocked"], each["touched"]) for each in content(page)["clusters"]]


def test_the_folders_of_a_page_are_made(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "out" / "of ci" / "page.html"
    pages.write([context().log()], path)
    assert path.read_text(encoding="ascii") == to_html([context().log()])


def test_what_reports_are_pages() -> None:
    assert [name for name in ("a.html", "a.HTM", "a.md", "html", "a.html.md") if is_page(pathlib.Path(name))] == ["a.html", "a.HTM"]


def test_a_cause_is_an_operator_or_a_line_and_the_first_blocks_the_most(source: str) -> None:
    page = to_html([broken("A", source), broken("B", source, line=8), broken("C", source, "aten::bar"), clean("D")])
    assert causes(page) == [
        ("OXP3001", "aten::foo", 2, 2),
        ("OXP3001", "aten::bar", 1, 1),
        ("OXP1007", "flip.py:4", 0, 3),
    ]
    assert [(model["name"], model["outcome"]) for model in content(page)["models"]] == [
        *((name, "failed") for name in "ABC"),
        ("D", "exported"),
    ]


def test_families_in_which_the_most_models_fail_come_first(source: str, here: pathlib.Path) -> None:
    logs = [clean("A"), broken("B", source), broken("C", source), broken("D", source), clean("E"), clean("F")]
    logs = [dataclasses.replace(log, family=family) for log, family in zip(logs, ["one", "two", "two", "one", "three", ""], strict=True)]
    data = content(to_html(logs))
    assert [tuple(each.values()) for each in data["families"]] == [("two", 2, 2, 0), ("one", 2, 1, 0), ("three", 1, 0, -1)]
    assert {each["name"]: each["family"] for each in data["models"]} == {"A": 1, "B": 0, "C": 0, "D": 1, "E": 2, "F": -1}
    assert [log.family for log in read_logs([save(logs, here / "logs")])] == [log.family for log in logs]
    # Families of one model each tell nothing.
    assert content(to_html([logs[0], logs[1]]))["families"] == []


def test_equal_findings_of_two_models_are_in_the_page_once(source: str) -> None:
    log = broken("A", source)
    data = content(to_html([log, dataclasses.replace(log, subject="B")]))
    assert len(data["findings"]) == 2
    assert data["models"][0]["findings"] == data["models"][1]["findings"]


def test_a_cause_has_its_smallest_model_and_a_script_that_fails_alike(source: str) -> None:
    logs = [broken("Large", source), broken("Small", source, line=8), broken("Tiny", source, "aten::bar")]
    assert [each["smallest"] for each in content(to_html(logs))["clusters"]] == ["", "", ""]
    script = "# a script\n" + "x = 1\n" * 5_000
    logs = [dataclasses.replace(log, attachments=(Attachment(REPRO, script),)) if log.subject == "Small" else log for log in logs]
    data = content(to_html(logs, sizes={"Tiny": 0, "Small": 1, "Large": 2}))
    assert [(each["where"], each["smallest"]) for each in data["clusters"]][:2] == [("aten::foo", "Small"), ("aten::bar", "Tiny")]
    folds = [[text for _, text in data["findings"][each["finding"]]["folds"]] for each in data["clusters"]]
    ((shown,), others) = folds[0], [*folds[1], *folds[2]]
    assert shown.startswith("# a script\n")
    assert 4_000 < len(shown) < 9_000
    assert not any("# a script" in text for text in others)
    assert data["findings"][data["clusters"][0]["finding"]]["line"] == 8


def test_the_earlier_run_tells_what_changed(source: str) -> None:
    before = [broken("A", source), clean("B"), clean("Gone"), broken("Same", source)]
    data = content(to_html([clean("A"), broken("B", source, "aten::bar"), broken("Same", source), clean("New")], before))
    assert {model["name"]: model["change"] for model in data["models"]} == {
        "A": "fixed",
        "B": "newly failing",
        "Same": "",
        "New": "new",
    }
    assert [each["where"] for each in data["clusters"] if each["new"]] == ["aten::bar"]


def test_a_finding_has_its_source_its_diff_and_its_stage_times(source: str) -> None:
    data = content(to_html([failed(source)]))
    (finding,) = [each for each in data["findings"] if each["rule"] == "OXP1001"]
    assert finding["code"] == ["        if ", "x.sum() < 0", ":"]
    ((_, before, after),) = finding["fixes"][0]["edits"]
    assert (len(before), after) == (3, ["        return torch.where(x.sum() < 0, -x, torch.linalg.foo(x))"])
    assert [name for name, _, _ in data["models"][0]["stages"]] == ["capture"]


def test_a_finding_has_the_graph_around_its_node(source: str) -> None:
    nodes = (Node("foo", "aten.foo.default", "float32[3]"), Node("x", "input"), Node("y", "output"))
    edges = (("x", "foo"), ("foo", "y"), ("left_out", "foo"), ("foo", "left_out"), ("left_out", "other"))
    graphs = []
    for blamed in ("y", "left_out"):
        made = context()
        made.report(UnsupportedOperator(operator="aten::foo"), at=Evidence(node=Graph(nodes, edges, blamed)))
        (finding,) = content(to_html([made.log()]))["findings"]
        graphs.append(finding["graph"])
    assert [(graph["edges"], graph["marked"]) for graph in graphs] == [([[1, 0], [0, 2]], 2), ([[1, 0], [0, 2]], -1)]
    assert ["foo" in node[0] for node in graphs[0]["nodes"]] == [True, False, False]


def test_a_page_loads_nothing_and_its_text_is_ascii(source: str) -> None:
    page = to_html([hostile(source)])
    assert page.isascii()
    assert not {"link", "img", "iframe", "base"} & {*Elements(page).tags}
    assert not {"src", "href"} & Elements(page).attributes


def nasty(source: str) -> Log:
    """A log whose every text tries to break out of the page."""
    made = context()
    made.subject = BREAKOUT
    at = Location(source, Region(6, 1, 6, 9, (BREAKOUT,)), BREAKOUT, BREAKOUT)
    with contextlib.suppress(ExportFailed), made.stage(BREAKOUT):
        made.event(BREAKOUT)
        edit = Edit(source, Region(6, 1, 6, 9, (BREAKOUT,)), BREAKOUT)
        fixes = [Fix(BREAKOUT, Confidence.SAFE, edits=(edit,)), Fix(BREAKOUT, Confidence.GUESS, snippet=BREAKOUT)]
        raise made.fail(DataDependentBranch(condition=BREAKOUT), at=at, notes=[BREAKOUT], fixes=fixes, cause=RuntimeError(BREAKOUT))
    return dataclasses.replace(made.log(), attachments=(Attachment(REPRO, BREAKOUT),))


def test_no_text_of_a_log_becomes_an_element_in_a_browser(source: str, here: pathlib.Path) -> None:
    logs = [nasty(source), hostile(source)]
    page = to_html(logs)
    assert page.count("<script") == 2
    # NOTE: the policy of the page would keep the script from opening the folds.
    policy = re.compile(r"<meta http-equiv=.*?>")
    seen = opened(policy.sub("", page).replace("</body>", f"<script>{OPEN_ALL}setTimeout(() => {{{OPEN_ALL}}}, 300)</script></body>"), here)
    shown = Elements(seen)
    assert "img" not in shown.tags
    assert shown.tags.count("script") == 3
    assert "onerror" not in shown.attributes
    assert "<title>broken" not in seen
    assert "\u202e" not in seen
    assert shown.tags.count("article") >= 2
    assert sum("</script><script>" in text for text in shown.texts) >= 10


def test_the_policy_stops_what_would_break_out_and_many_models_open_fast(source: str, here: pathlib.Path) -> None:
    log = broken("A", source)
    page = to_html(dataclasses.replace(log, subject=f"model{number}") for number in range(1000))
    seen = opened(
        page.replace("<body>", "<body><img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"), here
    )
    (milliseconds,) = re.findall(r'data-ready="(\d+)"', seen)
    assert int(milliseconds) < 2000
    assert "<title>broken" not in seen
    assert "0 of 1,000 models exported" in seen
    assert Elements(seen).tags.count("details") <= 100


def save(logs: Sequence[Log], folder: pathlib.Path) -> pathlib.Path:
    """The folder with a SARIF file for each of `logs`, and one with the runs of all."""
    runs = []
    for number, log in enumerate(logs):
        sarif.write(log, folder / f"log{number}.sarif")
        whole = json.loads((folder / f"log{number}.sarif").read_text(encoding="utf-8"))
        runs += whole["runs"]
    (folder / "all.sarif").write_text(json.dumps({**whole, "runs": runs}), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("models", "shown"), [(20, True), (21, False)])
def test_the_steps_of_each_model_are_shown_for_twenty_models(models: int, shown: bool) -> None:
    made = context()
    made.event("A step.")
    page = to_html(dataclasses.replace(made.log(), subject=f"model{number}") for number in range(models))
    assert {tuple(name for name, _ in each["folds"]) for each in content(page)["models"]} == {("Steps (1)",) if shown else ()}


def test_a_log_that_is_in_two_files_counts_once(source: str, here: pathlib.Path) -> None:
    folder = save([broken("A", source), clean("B"), broken("B", source)], here / "logs")
    assert [log.subject for log in read_logs([folder])] == ["A", "B (log1)", "B (log2)"]
    assert [log.subject for log in read_logs([folder / "all.sarif"])] == ["A", "B (all)", "B (all) 2"]


def test_a_log_and_its_file_give_the_same_page(source: str, here: pathlib.Path) -> None:
    for log in (failed(source), exported(here)):
        sarif.write(log, here / "net.sarif")
        data, restored = content(to_html([log])), content(to_html(read_logs([here / "net.sarif"])))
        assert {**data, "findings": []} == {**restored, "findings": []}
        assert [each["message"] for each in data["findings"]] == [each["message"] for each in restored["findings"]]


def test_golden_summary(source: str, golden: Callable[[str, str], None]) -> None:
    before = [clean("A"), clean("B"), broken("D", source)]
    logs = [broken("A", source), broken("B", source, "aten::bar"), broken("C", source), clean("D")]
    golden("report_summary.md", job_summary.to_markdown(logs, before))


def test_a_summary_of_many_fits_into_a_comment(source: str) -> None:
    log = broken("A", source)
    findings = [
        dataclasses.replace(log.findings[0], rule=UnsupportedOperator(operator=f"aten::{'x' * 300}{number}")) for number in range(300)
    ]
    logs = [
        dataclasses.replace(log, subject=f"model{number}", findings=(each,), family=f"{'x' * 300}{number // 2}")
        for number, each in enumerate(findings)
    ]
    summary = job_summary.to_markdown(logs, [])
    assert len(summary) < 65_536
    assert "omitted here" in summary


def test_no_text_of_a_log_becomes_markup_of_a_summary(source: str) -> None:
    log = hostile(source)
    logs = [dataclasses.replace(log, family="other"), *(dataclasses.replace(log, subject=HOSTILE * n, family=HOSTILE) for n in (1, 2))]
    summary = job_summary.to_markdown(logs, [])
    tokens = [token for block in MarkdownIt().enable("table").parse(summary) for token in (block, *(block.children or ()))]
    made = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert set(re.findall(r"</?\w+", made)) == {"<details", "</details", "<summary", "</summary"}
    assert not {token.type for token in tokens} & {"link_open", "image"}
    assert "\u202e" not in summary
    assert sum(token.type == "tr_open" for token in tokens) == 2 + 3 + 4


def test_the_differences_along_a_model_are_a_curve_and_a_table(here: pathlib.Path) -> None:
    rows = [
        Difference(f"n{index}", "aten::add", f"layers.{index // 60}.part", 7, 1e-7 if index < 120 else 1e-2, 0.0, 1e-4)
        for index in range(180)
    ]
    rows[120] = dataclasses.replace(rows[120], own=1e-2, rule="OXP6008")
    made = context()
    made.attach(
        DIFFERENCES, lambda: differences_text([*rows, Difference("x", "aten::sin", BREAKOUT, 0, float("inf"), 0.0, 1e-4)]), logging.ERROR
    )
    log = here / "log.sarif"
    sarif.write(made.log(), log)
    (found,) = (model["differences"] for model in content(to_html(read_logs([log])))["models"])
    assert len(found["points"]) <= 120
    assert [(height, told) for height, _, told in found["points"] if told] == [(-2.0, "OXP6008 aten::add, line 7")]
    assert [height for height, *_ in found["points"]][-1] == -1.0, "one power above the largest that is finite"
    assert [row[0] for row in found["layers"][:3]] == [f"layers.{index}.part" for index in range(3)]
    assert found["points"][0][0] == -7.0
    assert [row[1:] for row in found["layers"][:3]] == [
        ["60", "1e-07", "0", "0.0001", ""],
        ["60", "1e-07", "0", "0.0001", ""],
        ["60", "0.01", "0.01", "0.0001", "OXP6008"],
    ]
