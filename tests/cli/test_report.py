"""`onnxplain report`: one log and many, in markdown and as a page."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest
import torch
from gate_logs import LOG, run, write

import onnxplain

SAMPLES = pathlib.Path(__file__).parents[2] / "vscode-samples" / ".sarif"


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_page_of_one_log(here: pathlib.Path) -> None:
    write(["a  # E"])
    shown = run("report", LOG, "--html", "new/page.html")
    assert (shown.exit_code, shown.output) == (0, "")
    page = (here / "new" / "page.html").read_text(encoding="utf-8")
    assert "The export of Net failed" in page
    assert run("report", LOG, "-o", "other.html").exit_code == 0
    assert (here / "other.html").read_text(encoding="utf-8") == page


def test_many_logs_and_both_forms(here: pathlib.Path) -> None:
    shown = run("report", str(SAMPLES))
    assert shown.exit_code == 0
    assert shown.stdout.startswith("# 2 of 7 models exported")
    assert run("report", str(SAMPLES), "--html", "page.html", "-o", "summary.md").exit_code == 0
    assert (here / "summary.md").read_text(encoding="utf-8") == shown.stdout
    assert "2 of 7 models exported" in (here / "page.html").read_text(encoding="utf-8")


def test_what_changed_since_an_earlier_run(here: pathlib.Path) -> None:
    (here / "old").mkdir()
    write(["a"], "old/net.sarif")
    write(["a  # E"])
    shown = run("report", LOG, "--against", "old")
    assert "1 newly failing" in shown.stdout
    assert "OXP1002 (new)" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((LOG, "--html", LOG), "--html"),
        ((LOG, "--html", "net.py"), "--html"),
        ((LOG, "--html", "x.sarif"), "--html"),
        ((LOG, "--html", "x.html", "-o", "x.html"), "--html"),
        ((LOG, "--html", "x.html", "--against", "missing"), "missing"),
        (("empty", "--html", "x.html"), "empty"),
        (("other", "--html", "x.html"), "foreign.sarif"),
        ((), "LOG"),
    ],
)
def test_what_is_no_report(here: pathlib.Path, arguments: tuple[str, ...], named: str) -> None:
    write(["a  # E"])
    (here / "empty").mkdir()
    (here / "other").mkdir()
    shutil.copy(LOG, here / "other" / "net.sarif")
    (here / "other" / "foreign.sarif").write_text("{}", encoding="utf-8")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    shown = run("report", *arguments)
    assert shown.exit_code == 2
    assert named in shown.output
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_an_export_writes_a_page(here: pathlib.Path) -> None:
    onnxplain.export(torch.nn.ReLU(), (torch.ones(3),), report="reports/relu.html")
    page = (here / "reports" / "relu.html").read_text(encoding="ascii")
    assert page.startswith("<!doctype html>")
    assert "Exported ReLU" in page


def test_no_line_is_a_command_of_a_runner(here: pathlib.Path) -> None:
    write(["a  # E"])
    path = here / LOG
    log = json.loads(path.read_text(encoding="utf-8"))
    log["runs"][0]["invocations"][0]["commandLine"] = "onnxplain export net.py\n::error::told\n  ##[error]told"
    path.write_text(json.dumps(log), encoding="utf-8")
    shown = run("report", LOG)
    assert shown.exit_code == 0
    assert "error::told" in shown.stdout
    assert not [line for line in shown.stdout.splitlines() if line.strip().startswith(("::", "##["))]


@pytest.mark.parametrize("seconds", [float("inf"), "1e400", -1, None, True])
def test_a_stage_takes_a_finite_number_of_seconds(here: pathlib.Path, seconds: object) -> None:
    write(["a  # E"])
    path = here / LOG
    log = json.loads(path.read_text(encoding="utf-8"))
    log["runs"][0]["properties"]["onnxplain/stages"] = [{"name": "open", "seconds": seconds, "completed": True}]
    path.write_text(json.dumps(log), encoding="utf-8")
    assert run("report", LOG, "--html", "page.html").exit_code == 2
    assert not (here / "page.html").exists()


@pytest.mark.parametrize("field", ["x" * 200_000, "a\rb"])
def test_a_table_that_is_none_is_left_out(here: pathlib.Path, field: str) -> None:
    write(["a  # E"])
    path = here / LOG
    log = json.loads(path.read_text(encoding="utf-8"))
    header = "node,operator,module,line,difference,own,tolerance,rule"
    log["runs"][0]["properties"]["onnxplain/differences"] = f"{header}\n{field},b,c,1,0.1,0.1,0.1,d\n"
    path.write_text(json.dumps(log), encoding="utf-8")
    assert run("report", LOG).exit_code == 0
    assert run("report", LOG, "--html", "page.html").exit_code == 0
