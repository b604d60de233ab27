"""The exceptions of an export. Each carries the log."""

from __future__ import annotations

from .diagnostic import Diagnostic
from .display import message_of, visible
from .errors import OnnxExporterError
from .log import Log


class ExportFailed(OnnxExporterError):
    """An export has no result. The text starts with the first finding and counts the others.

    Attributes:
        log: Everything that the export reported; never empty.
        cause: The exception behind the first finding, if there was one.
    """

    def __init__(self, log: Log, cause: BaseException | None = None) -> None:
        self.log = log
        self.cause = cause
        super().__init__(log, cause)

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The findings of the log, worst first."""
        return self.log.findings

    def __str__(self) -> str:
        first = next(finding for finding in self.log.findings if finding.fails)
        return f"{first}\n{self.log.summary}"

    def _repr_html_(self) -> str:
        return self.log._repr_html_()

    def _repr_markdown_(self) -> str:
        return self.log._repr_markdown_()

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        from .notebook import traceback_of

        return traceback_of(self.log)


class LogNotSaved(OnnxExporterError):
    """The log of an export, or another file that belongs to it, could not be written. The log tells whether the export succeeded.

    Attributes:
        log: Everything that the export reported.
        error: The exception that stopped the write.
    """

    def __init__(self, log: Log, error: Exception) -> None:
        self.log = log
        self.error = error
        super().__init__(log, error)

    def __str__(self) -> str:
        told = f"Some of the files that you asked for could not be saved ({message_of(self.error)}). The log says: {self.log.verdict}"
        return "\n".join([visible(told), *map(str, self.log.findings[:1])])
