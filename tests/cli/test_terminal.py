"""The running stage on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
from click.testing import CliRunner, Result

from onnxplain.cli import main
from onnxplain.cli.progress import StageLine


def run(*args: str) -> Result:
    """The result of `onnxplain ARGS`."""
    return CliRunner().invoke(main, args)


def test_a_pipe_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in run("rules").stdout


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


def test_prints_beside_the_stage_line_are_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the line, on stderr, would overtake them."""

    class Buffered(Terminal):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    out, errors = Buffered(), Buffered()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", errors)
    stages = StageLine()
    with stages.active():
        stages.show("capture")
        assert errors.flushed == "capture ...\r"
        assert sys.stdout.write("a") == 1
        assert (out.flushed, errors.screen()) == ("a", "")
        assert errors.flushed == errors.getvalue()
        sys.stdout.writelines(["b\n", "c\n"])
        assert (out.flushed, errors.screen()) == ("ab\nc\n", "capture ...")
        sys.stdout.write("")
        assert errors.screen() == "capture ..."
    assert errors.screen() == ""
    stages.show("later")
    assert errors.flushed.endswith("later ...\r")


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
