"""Which stage runs, on a line of the terminal that steps aside for the user's own prints."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast


class StageLine:
    """The name of the current stage on the terminal's last line, on stderr. Does nothing where stderr is no terminal.

    While it is active, `sys.stdout` and `sys.stderr` take the line away before they write, and put it back after a line end.
    """

    # NOTE: not rich's live display, which reprints what the user's code prints: on stderr, wrapped, and as markup. What writes past
    # sys.stdout, such as C++ code and logging handlers from before, finds the cursor at the start of the line here and overwrites it.

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
        """Says that `stage` runs now."""
        self._clear()
        self._text = f"{stage} ..."
        self._draw()

    def write(self, stream: TextIO, text: str) -> int:
        """Writes `text` to `stream` where the line stood."""
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
