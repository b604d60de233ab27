"""The log on a terminal: each finding, what became of the export, and the files that were written."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from .log import Log
from .text import Span, lines, shown_path, summary, verdict, visible

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
"""What files are called, by their role in the log."""


def make_console() -> Console:
    """A console for standard output: colours on a terminal only, and none at all where `NO_COLOR` is set."""
    # NOTE: rich itself keeps bold and underline under NO_COLOR; a log file that asked for none should hold no escapes.
    console = Console(color_system=None if os.environ.get("NO_COLOR") else "auto", highlight=False)
    if not console.is_terminal:
        # What reads a pipe has no width: a table must not fold its cells to the 80 columns that rich assumes.
        console.width = 10_000
    return console


def render(log: Log, console: Console, written: Mapping[str, pathlib.Path] | None = None) -> None:
    """Prints `log`.

    Args:
        log: What an export reported. Findings that the source suppresses, and events, are shown at `logging.DEBUG` only.
        console: Where to.
        written: Files that were written beside the model, by what they are: `{"log": path}`.
    """
    detailed = log.options.verbosity_level <= logging.DEBUG
    for finding in log.findings if detailed else log.active:
        show_lines(lines(finding), console)
        console.print()
    if detailed:
        for event in log.events:
            show_lines(([(f"{event.stage or 'export'}: ", "label"), (visible(line), "faint")] for line in event.text.splitlines()), console)
    show_lines([[(visible(f"{verdict(log)}: {summary(log)}"), "headline" if log.succeeded else "error")]], console)
    files = [(_KINDS.get(artifact.role, "data"), artifact.path) for artifact in log.artifacts]
    for what, path in [*files, *(written or {}).items()]:
        show_lines([[(f"  {what:<8}", "label"), (visible(shown_path(str(path))), "place")]], console)
    if ids := sorted({finding.rule.id for finding in log.active}):
        show_lines([[(f"Run `onnxplain explain {' '.join(ids)}` to read more.", "faint")]], console)


def show_lines(rendered: Iterable[list[Span]], console: Console) -> None:
    """Prints lines of spans as they are: nothing in them is markup, and no line is broken, because problem matchers read them."""
    for line in rendered:
        console.print(Text.assemble(*((text, _STYLES.get(role, "")) for text, role in line)), soft_wrap=True)
