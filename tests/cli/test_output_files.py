"""What `-o` replaces: a file that the user means, and never a log, a source, a pipe or a device."""

from __future__ import annotations

import os
import pathlib

import pytest
from gate_logs import BASELINE, LOG, run, write


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    write(["a  # E", "b  # W"])
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub/../net.sarif")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "folder").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


COMMANDS = {"report": ("report", LOG), "gate": ("gate", LOG)}


@pytest.mark.parametrize("output", ["sub/../net.sarif", "link", "folder/net.sarif", "pipe", "folder/pipe", "round", "."])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_replaces_nothing_else(here: pathlib.Path, command: str, output: str) -> None:
    before = pathlib.Path(LOG).read_bytes()
    told = run(*COMMANDS[command], "-o", output)
    assert told.exit_code == 2, told.output
    assert "unexpected" not in told.output
    assert ("standard output" in told.stderr) is (output in ("pipe", "folder/pipe", "round"))
    assert pathlib.Path(LOG).read_bytes() == before
    assert (here / "pipe").is_fifo()
    assert (here / "link").is_symlink()


@pytest.mark.parametrize("output", ["net.py", "sub/../net.py", "folder/net.py"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_replaces_no_source_of_a_log(here: pathlib.Path, command: str, output: str) -> None:
    before = (here / "net.py").read_bytes()
    told = run(*COMMANDS[command], "-o", output)
    assert (told.exit_code, "does not name" in told.output) == (2, True), told.output
    assert (here / "net.py").read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_replaces_no_source_of_an_export_elsewhere(here: pathlib.Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    before, folder = (here / "net.py").read_bytes(), here / "another"
    folder.mkdir()
    monkeypatch.chdir(folder)
    name, *arguments = COMMANDS[command]
    told = run(name, str(here / arguments[0]), "-o", str(here / "net.py"))
    assert (told.exit_code, "does not name" in told.output) == (2, True), told.output
    assert (here / "net.py").read_bytes() == before


def test_a_report_follows_a_link(here: pathlib.Path) -> None:
    (here / "shown.md").symlink_to("sub/report.md")
    assert run("report", LOG, "-o", "shown.md").exit_code == 0
    assert (here / "shown.md").is_symlink()
    assert (here / "sub" / "report.md").read_text(encoding="utf-8").startswith("#")


@pytest.mark.parametrize("log", ["round", "pipe"])
def test_a_gate_judges_no_loop_and_rewrites_no_pipe(here: pathlib.Path, log: str) -> None:
    assert run("baseline", "accept", LOG).exit_code == 0
    for baseline, name in ((BASELINE, log), (log, LOG)):
        if (baseline, name) != ("pipe", LOG):
            told = run("gate", name, "--baseline", baseline)
            assert (told.exit_code, "unexpected" in told.output) == (2, False), told.output
    told = run("baseline", "accept", LOG, "--baseline", log)
    assert (told.exit_code, "unexpected" in told.output) == (2, False), told.output
    assert "standard output" not in told.output
    assert (here / "pipe").is_fifo()


@pytest.mark.parametrize(
    "arguments",
    [("fix", "{log}"), ("report", "{log}"), ("gate", "{log}"), ("baseline", "accept", "{log}"), ("export", "{folder}/net.py:build")],
    ids=lambda arguments: arguments[0],
)
def test_a_current_folder_that_is_gone(here: pathlib.Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    gone = here / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    told = run(*(each.format(log=here / LOG, folder=here) for each in arguments))
    helped, explained = run(arguments[0], "--help"), run("rules")
    monkeypatch.chdir(here)
    assert (told.exit_code, told.output.count("current folder")) == (2, 1), told.output
    assert (helped.exit_code, explained.exit_code) == (0, 0)
