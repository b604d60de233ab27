"""Findings and the running stage on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from logs import SOURCE, context, exported, failed
from rich.console import Console

from onnxplain.cli import main
from onnxplain.cli.progress import StageLine
from onnxplain.diagnostics import Confidence, DiagnosticOptions, Edit, ExportFailed, Fix, Location, Log, Region, console
from onnxplain.rules import DataDependentBranch, TrainingMode


def run(*args: str) -> Result:
    """The result of `onnxplain ARGS`."""
    return CliRunner().invoke(main, args)


def shown(log: Log, **options: Any) -> str:
    """What the console shows of `log`."""
    file = io.StringIO()
    console.render(log, Console(file=file, **options))
    return file.getvalue()


@pytest.mark.parametrize("name", ["failed", "exported"])
def test_golden(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "flip.py"
    source.write_text(SOURCE, encoding="utf-8")
    log = failed(str(source)) if name == "failed" else exported(tmp_path)
    golden(f"terminal_{name}.txt", shown(log))


def with_finding(folder: pathlib.Path, **arguments: Any) -> Log:
    """A log with one finding, in a file whose line has tabs and wide characters."""
    file = folder / "wide.py"
    file.write_text('\ty = table["表"] + missing(x)\n', encoding="utf-8")
    made = context()
    place = Location(str(file), Region(1, 19, 1, 29), "forward")
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        raise made.fail(DataDependentBranch(condition="x > 0"), at=place, **arguments)
    return made.log()


def test_the_caret_stands_under_the_code(folder: pathlib.Path) -> None:
    code, caret = shown(with_finding(folder)).splitlines()[2:4]
    # Each of the two wide characters takes two columns.
    assert caret.index("^") == code.index("missing") + 1
    assert caret.count("^") == len("missing(x)")


def test_an_edit_is_shown_as_whole_lines(folder: pathlib.Path) -> None:
    edit = Edit(str(folder / "wide.py"), Region(1, 19, 1, 26), "present")
    text = str(with_finding(folder, fixes=[Fix("Call the other.", Confidence.SAFE, edits=(edit,))]).findings[0])
    assert '   - \ty = table["表"] + missing(x)\n   + \ty = table["表"] + present(x)' in text


def test_what_comes_from_a_model_steers_no_terminal(folder: pathlib.Path) -> None:
    hostile = "\x1b[2J\x07 [red]x[/red] :smile: \u202e \udc80"
    log = with_finding(folder, notes=[hostile], fixes=[Fix(hostile, Confidence.GUESS, snippet=hostile)])
    text = shown(log, force_terminal=True, color_system=None)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\udc80]", text)
    assert text.count("\\x1b[2J\\x07 [red]x[/red] :smile: \\u202e \\udc80") == 3


@pytest.mark.parametrize("width", [10, 80])
def test_no_line_depends_on_the_width(width: int, folder: pathlib.Path) -> None:
    log = with_finding(folder, notes=["long " * 50 + "note"])
    assert shown(log, width=width) == shown(log, width=1000)


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.make_console().color_system is not None
    monkeypatch.setenv("NO_COLOR", "1")
    assert console.make_console().color_system is None
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in run("rules").stdout


def test_suppressed_findings_and_events_are_shown_at_debug_only(folder: pathlib.Path) -> None:
    file = folder / "models.py"
    file.write_text("model = 1  # onnxplain: ignore[OXP1007] on purpose\n", encoding="utf-8")
    for verbosity, expected in ((20, False), (10, True)):
        made = context(DiagnosticOptions(verbosity_level=verbosity))
        with made.stage("capture"):
            made.event("A step.")
            made.report(TrainingMode(layers=("dropout",)), at=Location(str(file), Region(1)))
        text = shown(made.finish())
        assert ("OXP1007" in text, "A step." in text) == (expected, expected)
        assert "(1 suppressed" in text


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> str:
        """What it shows, after carriage returns have let later characters overwrite earlier ones."""
        rows = []
        for row in self.getvalue().split("\n"):
            cells: list[str] = []
            for part in row.split("\r"):
                cells[: len(part)] = part
            rows.append("".join(cells).rstrip())
        return "\n".join(rows)


def test_the_stage_line_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    stages = StageLine()
    with stages.active():
        stages.show("capture")
        sys.stdout.write("a\n")
        assert terminal.screen() == "a\ncapture ..."
        sys.stdout.write("b")
        assert terminal.screen() == "a\nb"
        stages.show("passes")
        assert terminal.screen() == "a\nb"
        sys.stderr.write("c\n")
        assert terminal.screen() == "a\nbc\npasses ..."
    assert terminal.screen() == "a\nbc\n"
    assert sys.stdout is terminal


def test_the_stage_line_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    stages = StageLine()
    with stages.active():
        stages.show("capture")
    assert errors.getvalue() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_the_users_prints_are_whole_in_a_terminal(folder: pathlib.Path) -> None:
    import pty

    (folder / "chatty.py").write_text(
        textwrap.dedent("""\
            import torch

            class Chatty(torch.nn.Module):
                def forward(self, x):
                    print("[bold]hi[/bold]", end=" ")
                    print("there")
                    return x * 2

            def chatty():
                return Chatty(), (torch.ones(3),)
            """),
        encoding="utf-8",
    )
    written = bytearray()
    owner, terminal = pty.openpty()
    program = "from onnxplain.cli import main; main(['export', 'chatty.py:chatty'])"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=terminal, stderr=terminal, stdin=terminal)
    os.close(terminal)
    with contextlib.suppress(OSError):
        while chunk := os.read(owner, 65_536):
            written += chunk
    os.close(owner)
    assert process.wait() == 0
    shown = Terminal(written.decode().replace("\r\n", "\n")).screen()
    assert re.sub(r"\x1b\[[\d;]*m", "", shown).startswith("[bold]hi[/bold] there\n")
    assert b"capture ..." in written
