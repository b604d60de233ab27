"""What users catch."""

from __future__ import annotations

from .finding import Diagnostic
from .log import Log
from .text import plain, summary


class OnnxExporterError(Exception):
    """Base class of everything that onnxplain raises on purpose."""


class InvalidArgument(OnnxExporterError, TypeError, ValueError):
    """An argument has the wrong type or value. The text names the argument, what was expected and what came."""


class ExportFailed(OnnxExporterError):
    """An export has no result. Its text begins with the first finding and counts the others.

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
        return f"{plain(first)}\n{summary(self.log)}"
