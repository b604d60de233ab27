"""What an export raises when it has no result or cannot tell it, and what a log raises that cannot be read."""

from __future__ import annotations

import os

from .errors import OnnxExporterError
from .finding import Diagnostic
from .log import Log
from .text import plain, summary, verdict


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


class LogNotSaved(OnnxExporterError):
    """The log of an export, or another file that goes with it, could not be written. Whether the export itself succeeded is in the log.

    Attributes:
        log: Everything that the export reported.
    """

    def __init__(self, log: Log, error: Exception) -> None:
        self.log = log
        self.error = error
        super().__init__(log, error)

    def __str__(self) -> str:
        told = f"Not all files that were asked for could be saved ({self.error}). The log says: {verdict(self.log)}"
        return "\n".join([told, *(plain(finding) for finding in self.log.findings[:1])])


class UnreadableLog(OnnxExporterError, ValueError):
    """A file is no SARIF log of onnxplain's, or cannot be read. The text names the file and says why."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} is no log that onnxplain can read: {why}")
