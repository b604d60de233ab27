"""Findings and logs in notebooks: as HTML for the results of cells, and instead of a traceback."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from .diagnostic import Diagnostic
from .display import Span, visible, visible_lines
from .log import Log

_STYLES = {
    "error": "color:#e5484d;font-weight:bold",
    "warning": "color:#b7791f;font-weight:bold",
    "note": "color:#3e8ed0;font-weight:bold",
    "headline": "font-weight:bold",
    "place": "color:#3e8ed0",
    "gutter": "opacity:.6",
    "label": "font-weight:bold",
    "removed": "background:rgba(229,72,77,.25)",
    "added": "background:rgba(63,185,80,.25)",
}
"""Role of a span to its style, which has to be readable on light and on dark ground."""
_PRE = '<pre style="font-family:monospace">'
_LIMIT = 20
"""The findings that a cell shows."""


def finding_html(finding: Diagnostic) -> str:
    """`finding` as the result of a cell: what a terminal shows, and its stack and cause folded."""
    from . import markdown

    folds = [("Call stack, innermost last", markdown.stack(finding.stack))] if len(finding.stack) > 1 else []
    folds += markdown.causes(finding.cause)
    return _div([_lines(finding.lines()), *(_fold(title, f"{_PRE}{_text(text)}</pre>") for title, text in folds)])


def log_html(log: Log) -> str:
    """`log` as the result of a cell: its findings, the verdict, and the times of its stages folded."""
    from . import markdown

    shown = log.active[:_LIMIT]
    left_out = len(log.active) - len(shown)
    told = f"{log.verdict}: {log.summary}" + (f" {left_out:,} more findings are not shown here." if left_out else "")
    stages = "".join(
        f"<tr><td>{_text(each.name)}</td><td>{each.seconds:.3f} s</td></tr>" for each in log.stages if each.seconds >= markdown.SHORTEST
    )
    times = [_fold("Stage times", f"<table>{stages}</table>")] if stages else []
    return _div([*map(finding_html, shown), f"<p><strong>{_text(told)}</strong></p>", *times])


def traceback_of(log: Log) -> list[str]:
    """The lines that IPython shows of an export that failed: its findings, the worst first."""
    from .console import ansi_lines

    return [
        *(line for finding in log.active[:_LIMIT] for line in (*ansi_lines(finding.lines()), "")),
        visible(f"{log.verdict}: {log.summary}"),
    ]


def _lines(rendered: Iterable[list[Span]]) -> str:
    return f"{_PRE}{'<br>'.join(''.join(_spans(line)) for line in rendered)}</pre>"


def _spans(line: Iterable[Span]) -> Iterator[str]:
    for text, role in line:
        style = _STYLES.get(role)
        yield f'<span style="{style}">{html.escape(text)}</span>' if style else html.escape(text)


def _text(text: str) -> str:
    return html.escape(visible_lines(text))


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _div(parts: Iterable[str]) -> str:
    return f"<div>{''.join(parts)}</div>"
