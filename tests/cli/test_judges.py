"""Commands that judge: their verdict is an exit code, and whatever keeps them from one has another."""

from __future__ import annotations

import pathlib
import re
import sys

import click
import pytest
from gate_logs import BASELINE, LOG, run, write

from onnxplain.cli import JUDGES, main
from onnxplain.diagnostics import GATE_FORMATS

JUDGE = {"gate": ("gate", LOG), "baseline": ("baseline", "accept", LOG)}
OTHERS = {"rules": ("rules",), "report": ("report", LOG)}


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(["a  # E", "b  # W"])


@pytest.mark.parametrize("name", GATE_FORMATS)
def test_a_report_is_the_same_in_a_file_and_on_the_output(name: str) -> None:
    shown = run("gate", LOG, "--format", name)
    saved = run("gate", LOG, "--format", name, "--output", "told")
    assert (shown.exit_code, saved.exit_code) == (1, 1)
    told = pathlib.Path("told").read_text(encoding="utf-8")
    assert told.strip()
    # NOTE: the workflow commands of GitHub have a new token each time.
    plain = [re.sub(r"\b[0-9a-f]{32}\b", "token", each).split() for each in (shown.stdout, told)]
    assert plain[0] == plain[1]
    assert len(saved.stdout.splitlines()) == 1
    # The verdict is on the output or beside it, and once.
    assert bool(shown.stderr) is not GATE_FORMATS[name].says_verdict


def test_a_passed_gate_exits_with_zero() -> None:
    assert run("gate", LOG, "--max-errors", "1").exit_code == 0
    assert run("baseline", "accept", LOG).exit_code == 0
    assert run("gate", LOG, "--baseline", BASELINE).exit_code == 0


@pytest.mark.parametrize(
    ("error", "code", "other", "is_told"),
    [
        (RuntimeError("thunder"), 2, 1, True),
        (click.ClickException("thunder"), 2, 1, True),
        (click.UsageError("thunder"), 2, 2, True),
        (KeyboardInterrupt(), 2, 130, False),
        (SystemExit("thunder"), 2, 1, True),
        (SystemExit(0), 2, 1, False),
        (click.Abort(), 2, 1, False),
        (BrokenPipeError(), 2, 2, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_keeps_a_command_from_its_end(
    error: BaseException, code: int, other: int, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: click.Command, ctx: click.Context) -> None:
        raise error

    monkeypatch.setattr(click.Command, "invoke", stopped)
    for name, arguments in {**JUDGE, **OTHERS}.items():
        ended = run(*arguments)
        assert (name, ended.exit_code) == (name, code if name in JUDGES else other)
        assert ("thunder" in ended.stderr) is is_told
        assert ("Interrupted." in ended.stderr) is isinstance(error, KeyboardInterrupt)


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", [("gate", "missing"), ("explain", "OXP")])
def test_a_message_that_cannot_be_written_is_no_verdict(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with pathlib.Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        assert ended.value.code == 2
        # When Python ends, it writes what is left, and would exit with another code if that failed.
        full.write("rest")
        full.flush()


def test_a_report_that_cannot_be_written_is_no_verdict() -> None:
    pathlib.Path("folder").mkdir()
    ended = run("gate", LOG, "--output", "folder")
    assert ended.exit_code == 2
    assert "folder" in ended.stderr
