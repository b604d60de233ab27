"""The commands that only read, and what they import."""

from __future__ import annotations

import importlib.resources
import json
import os
import pathlib
import re
import subprocess
import sys

import jsonschema
import pytest
from click.testing import CliRunner, Result
from logs import context

from onnxplain.cli import COMMANDS, main
from onnxplain.diagnostics import Rule, sarif
from onnxplain.rules import DataDependentBranch


def run(*args: str) -> Result:
    """The result of `onnxplain ARGS`."""
    return CliRunner().invoke(main, args)


def test_the_group_lists_its_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("args", ["['--help']", "['rules']", "['rules', '--json']", "['explain', 'OXP1001']", "['export', '--help']"])
def test_commands_that_only_read_import_nothing_heavy(args: str) -> None:
    program = f"""\
import sys
from onnxplain.cli import main
main({args}, standalone_mode=False)
assert not {{'torch', 'numpy', 'onnx', 'onnx_ir', 'onnxscript', 'onnxruntime', 'jinja2', 'sarif_om'}} & {{*sys.modules}}
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_python_dash_m_is_the_command_line() -> None:
    ran = subprocess.run([sys.executable, "-m", "onnxplain", "rules"], check=True, capture_output=True, text=True)
    assert "OXP1001" in ran.stdout


def test_a_pipe_without_unicode_is_no_reason_to_fail() -> None:
    program = "from onnxplain.cli import main; main(['rules'], standalone_mode=False); import click; click.echo(chr(960))"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert "\\u03c0" in ran.stdout


@pytest.mark.parametrize("command", [["rules"], ["rules", "--json"], ["explain", "OXP1001"]], ids=" ".join)
def test_a_reader_that_has_gone_is_no_bug(command: list[str]) -> None:
    """As with `onnxplain rules | head`."""
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run([sys.executable, "-m", "onnxplain", *command], check=False, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_rules_lists_every_rule_once_a_line_when_piped() -> None:
    lines = [line for line in run("rules").stdout.splitlines() if line.startswith(" ")]
    assert [line.split()[0] for line in lines] == [rule.id for rule in Rule.all()]
    assert [line.split()[1] for line in lines] == [rule.level.value for rule in Rule.all()]


def test_summaries_are_in_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    for width in ("100", "20"):
        monkeypatch.setenv("COLUMNS", width)
        lines = [line for line in run("rules").stdout.splitlines() if line.startswith(" ")]
        column = len("  OXP1001  warning  ") + max(len(rule.__name__) for rule in Rule.all()) + 2
        assert {line[column - 2 : column] for line in lines} == {"  "}
        assert " " not in {line[column] for line in lines}
        # A word that is longer may stand alone in the column, which has 20 characters at least.
        room = max(int(width) - column, 20)
        assert all(len(line) - column <= room or " " not in line[column:] for line in lines)
        assert any(len(line) - column > room - 5 for line in lines)
        told = {line.split()[0]: line[column:] for line in lines if line.split()[0].startswith("OXP")}
        assert all(rule.page.summary.startswith(told[rule.id]) for rule in Rule.all())
        assert len(lines) > len(told) == len([*Rule.all()])


def test_rules_as_json() -> None:
    listed = json.loads(run("rules", "--json").stdout)
    schema = json.loads(importlib.resources.files("onnxplain.schemas").joinpath("rules.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(listed, schema)
    assert [rule["id"] for rule in listed] == [rule.id for rule in Rule.all()]
    branch = next(rule for rule in listed if rule["name"] == "DataDependentBranch")
    assert branch == {
        "id": "OXP1001",
        "name": "DataDependentBranch",
        "level": "error",
        "chapter": "capture",
        "summary": DataDependentBranch.page.summary,
        "message": DataDependentBranch.message,
        "arguments": ["condition"],
        "revision": 1,
        "since": "0.1.0",
    }


@pytest.mark.parametrize("id", ["OXP1001", "oxp1001", "DataDependentBranch"])
def test_explain_prints_the_page_as_markdown_when_piped(id: str) -> None:
    result = run("explain", id)
    assert result.exit_code == 0
    assert result.stdout.startswith("# OXP1001: DataDependentBranch\n")
    assert DataDependentBranch.page.markdown in result.stdout


def test_explain_takes_several_rules() -> None:
    headings = re.findall(r"^# (\w+)", run("explain", "OXP1007", "OXP1001").stdout, re.MULTILINE)
    assert headings == ["OXP1007", "OXP1001"]


def test_explain_names_the_nearest_rules() -> None:
    result = run("explain", "OXP10O1")
    assert result.exit_code == 2
    near = re.findall(r"(OXP\d{4}) \(", result.stderr)
    assert len(near) == 3
    assert all(re.fullmatch(r"OXP10\d1", each) for each in near)
    assert not re.search(r"OXP\d{4}", run("explain", "qqqq").stderr)


def test_a_report_goes_to_the_output_or_to_another_file_than_the_log(tmp_path: pathlib.Path) -> None:
    log, report = tmp_path / "net.sarif", tmp_path / "net.md"
    sarif.write(context().log(), log)
    before = log.read_bytes()
    shown = run("report", str(log))
    assert (shown.exit_code, shown.stdout.startswith("#")) == (0, True)
    assert run("report", str(log), "-o", str(report)).exit_code == 0
    assert report.read_text(encoding="utf-8") == shown.stdout
    assert run("report", str(log), "-o", str(log)).exit_code == 2
    assert log.read_bytes() == before
    assert run("report", str(log), "-o", str(report / "below.md")).exit_code == 1
