"""The log on a terminal: each finding, the outcome of the export, and the files that it wrote."""

from __future__ import annotations

import io
import logging
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from .display import Span, shown_path, visible
from .log import Log

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
    "headline": "bold",
    "gutter": "blue",
    "removed": "red",
    "added": "green",
    "label": "bold",
    "faint": "dim",
}

_KINDS = {"resultFile": "model", "debugOutputFile": "repro"}
"""Role of a file in the log to its name on the terminal."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves the exception to the command line. Rich would end the process, and its SystemExit looks like one of a model."""
        # NOTE: rich calls this while it handles the exception.
        raise


def make_console() -> Console:
    """A console for standard output, with colours on a terminal only, and without any style if `NO_COLOR` is set."""
    # NOTE: under NO_COLOR rich keeps bold and underline; a file that asked for no colours should hold no escapes at all.
    # A model may close the standard output.
    file = sys.stderr if sys.stdout is not None and sys.stdout.closed else None
    console = _Console(file=file, color_system=None if os.environ.get("NO_COLOR") else "auto", highlight=False)
    if not console.is_terminal:
        # A pipe has no width: a table must not fold its cells to the 80 columns that rich assumes.
        console.width = 10_000
    return console


def show_log(
    log: Log, console: Console, written: Mapping[str, pathlib.Path] | None = None, details: Iterable[tuple[str, str]] = ()
) -> None:
    """Prints `log`.

    Args:
        log: The log. At `logging.DEBUG` suppressed findings and events appear as well.
        console: The console to print to.
        written: Files that the export wrote beside the model, by kind: `{"log": path}`.
        details: Lines about the exported model, each with its label.
    """
    detailed = log.options.verbosity_level <= logging.DEBUG
    for finding in log.findings if detailed else log.active:
        show_lines(finding.lines(), console)
        console.print()
    if detailed:
        for event in log.events:
            show_lines(([(f"{event.stage or 'export'}: ", "label"), (visible(line), "faint")] for line in event.text.splitlines()), console)
    show_lines([[(visible(f"{log.verdict}: {log.summary}"), "headline" if log.succeeded else "error")]], console)
    for label, text in details:
        show_lines([[(f"  {label:<8}", "label"), (visible(text), "")]], console)
    files = [(_KINDS.get(artifact.role, "data"), artifact.path) for artifact in log.artifacts]
    for what, path in [*files, *(written or {}).items()]:
        show_lines([[(f"  {what:<8}", "label"), (visible(shown_path(str(path))), "place")]], console)
    if ids := sorted({finding.rule.id for finding in log.active}):
        show_lines([[(f"Run `onnxplain explain {' '.join(ids)}` to read more.", "faint")]], console)


def show_lines(rendered: Iterable[list[Span]], console: Console) -> None:
    """Prints lines of spans. Their text is never markup, and no line is broken, because problem matchers read them."""
    for line in rendered:
        console.print(Text.assemble(*((text, _STYLES.get(role, "")) for text, role in line)), soft_wrap=True)


def ansi_lines(rendered: Iterable[list[Span]]) -> list[str]:
    """Lines of spans as text with the escape sequences of terminals, which notebooks show as colours, unless `NO_COLOR` is set."""
    console = _Console(
        color_system=None if os.environ.get("NO_COLOR") else "standard",
        force_terminal=True,
        force_jupyter=False,
        highlight=False,
        file=io.StringIO(),
        width=10_000,
    )
    with console.capture() as captured:
        show_lines(rendered, console)
    return captured.get().splitlines()
