"""The log of an export while it runs: whatever ends the process, the file holds what was found until then."""

from __future__ import annotations

import contextlib
import pathlib
import time

from onnxplain.diagnostics import DiagnosticContext, SarifProfile, remove_abandoned, replace_file

_STAGE = "onnxplain-stage-d2f0c1"
"""Stands for the stage in the text of the log, so that the next stage costs no new text."""

_SHARE = 0.1
"""The largest part of an export's time that writing findings may take."""


class Journal:
    """Writes what an export has found to the file of its log, as a log that says that the export did not come to its end.

    The file is complete SARIF at each moment. The log of the finished export replaces it.

    Args:
        context: What the export reports to.
        path: The file. The folder above it exists.
        profile: As for the log.
    """

    def __init__(self, context: DiagnosticContext, path: pathlib.Path, profile: SarifProfile) -> None:
        self._context = context
        self._path = path
        self._profile: SarifProfile = profile
        self._stage = ""
        self._text = ""
        self._outdated = True
        self._next = 0.0
        remove_abandoned(path.parent)

    def began(self, stage: str) -> None:
        """Writes the stage, and the findings that are not in the file yet."""
        self._stage = stage
        self._write()

    def found(self) -> None:
        """Writes the findings, unless that took too much of the time lately. The next finding or stage writes them then."""
        self._outdated = True
        if self._stage and time.perf_counter() >= self._next:
            self._write()

    def _write(self) -> None:
        self._context.process.check()
        if self._outdated:
            self._render()
        # NOTE: if this file cannot be written, neither can the log at the end, and that is an error.
        with contextlib.suppress(OSError):
            replace_file(self._path, self._text.replace(_STAGE, self._stage).encode(), durable=False)

    def _render(self) -> None:
        from onnxplain.diagnostics import sarif

        started = time.perf_counter()
        self._text = sarif.to_json(self._context.log_if_killed(_STAGE), profile=self._profile)
        self._outdated = False
        ended = time.perf_counter()
        self._next = ended + (ended - started) / _SHARE
