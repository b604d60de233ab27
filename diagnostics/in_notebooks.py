"""What a notebook asks findings and logs for. The sinks, which read both, load when it asks."""

from __future__ import annotations

from .diagnostic import Diagnostic
from .log import Log


def _finding_html(finding: Diagnostic) -> str:
    from .notebook import finding_html

    return finding_html(finding)


def _finding_markdown(finding: Diagnostic) -> str:
    from .markdown import finding_text

    return finding_text(finding)


def _log_html(log: Log) -> str:
    from .notebook import log_html

    return log_html(log)


def _log_markdown(log: Log) -> str:
    from .markdown import to_markdown

    return to_markdown(log)


Diagnostic._repr_html_, Diagnostic._repr_markdown_ = _finding_html, _finding_markdown
Log._repr_html_, Log._repr_markdown_ = _log_html, _log_markdown
