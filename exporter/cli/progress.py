"""The running stage, on a line of the terminal that makes room for the user's prints."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast


class StageLine:
    """Shows the name of the current stage on the last line of the terminal, on stderr. Does nothing if stderr is not a terminal.

    While it is active, `sys.stdout` and `sys.stderr` remove the line before they write, and restore it after a line end.
    """

    # NOTE: rich's live display would print the user's output again: on stderr, wrapped, and as markup. C++ code and older logging
    # handlers bypass sys.stdout; they find the cursor at the start of this line and overwrite it.

    def __init__(self) -> None:
        self._terminal = sys.stderr
        self._text = ""
        self._drawn = False
        self._at_line_start = True

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Shows the line until the end of the block."""
        if not self._terminal.isatty():
            yield
            return
        stdout = cast(TextIO, _Aside(sys.stdout, self)) if sys.stdout.isatty() else sys.stdout
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(cast(TextIO, _Aside(sys.stderr, self))):
            try:
                yield
            finally:
                self._clear()
                self._text = ""

    def show(self, stage: str) -> None:
        """Shows that `stage` runs now."""
        self._clear()
        self._text = f"{stage} ..."
        self._draw()

    def write(self, stream: TextIO, text: str) -> int:
        """Writes `text` to `stream` in place of the line."""
        self._clear()
        count = stream.write(text)
        self._at_line_start = text.endswith("\n") if text else self._at_line_start
        stream.flush()
        self._draw()
        return count

    def _draw(self) -> None:
        if self._text and self._at_line_start and self._terminal.isatty():
            self._terminal.write(f"{self._text}\r")
            self._terminal.flush()
            self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            self._terminal.write(f"{' ' * len(self._text)}\r")
            self._terminal.flush()
            self._drawn = False


class _Aside:
    """A standard stream whose writes go through a StageLine."""

    def __init__(self, stream: TextIO, line: StageLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        return self._line.write(self._stream, text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
