"""The folder of a triage, and the logs in it for commands that read logs."""

from __future__ import annotations

import os
import pathlib
import re
import sys
from collections.abc import Sequence
from types import TracebackType

from .jobs import Files, Model, TriageError
from .state import NAME, State

if sys.platform != "win32":
    import fcntl


class LockedFolder(TriageError):
    """Another triage works in the folder."""


class Folder:
    """The folder of a triage, which belongs to one process at a time.

    Raises:
        LockedFolder: Another process has it.
        TriageError: It cannot be made.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path.absolute()
        try:
            (self.path / "logs").mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise TriageError(f"--output: expected a folder, got {str(path)!r} ({error.strerror}).") from error

    def __enter__(self) -> Folder:
        if sys.platform != "win32":
            try:
                # NOTE: unlike a lock of `flock`, this one does not live on in a process that a model has left behind.
                fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise LockedFolder(f"--output: another triage works in {str(self.path)!r}. Wait for it, or give another folder.") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._lock)

    def files(self, model: Model) -> Files:
        """The files of a model."""
        logs = self.path / "logs"
        return Files(*(logs / f"{model.file}.{end}" for end in ("sarif", "txt", "json", "repro.py")))


def file_name(name: str) -> str:
    """A name of a file that says what `name` says, without the characters that file systems or shells do not like."""
    return re.sub(r"[^a-zA-Z0-9.-]+|^[.-]", "_", name)[:100] or "model"


def expanded(logs: Sequence[pathlib.Path]) -> tuple[list[pathlib.Path], frozenset[tuple[str, str]]]:
    """The logs, with those of its models in place of a triage's folder or database. And the flaky findings there: model, fingerprint.

    Raises:
        TriageError: A folder is not that of a triage, or the triage has exported no model.
    """
    found: list[pathlib.Path] = []
    flaky: frozenset[tuple[str, str]] = frozenset()
    for path in logs:
        folder = path if path.is_dir() else path.parent
        if not path.is_dir() and path.name != NAME:
            found.append(path)
            continue
        if not (folder / NAME).is_file():
            raise TriageError(f"LOG: expected a log or the folder of a triage, got the folder {str(path)!r} without {NAME}.")
        state = State(folder)
        try:
            verdicts = [known.verdict for known in state.last().values()]
            flaky |= state.flaky()
        finally:
            state.close()
        if not verdicts:
            raise TriageError(f"LOG: expected a triage with models, got {str(path)!r}, which has none yet.")
        found += [verdict.log for verdict in verdicts]
    return found, flaky
