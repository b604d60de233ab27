"""The files of an export until it is certain that it succeeds."""

from __future__ import annotations

import os
import pathlib
from types import TracebackType

from onnxplain.diagnostics import DiagnosticContext, OwnProcess, Temporary, make_folder, remove_abandoned, sha256, sync_folder


class Staging:
    """A folder beside the destination that holds the files of one export until `commit` moves them to their place.

    Each file appears whole or not at all: even after a crash of the system, its name leads to the old content or to the new one. A
    model and its external data are two files, and the data appears first.

    In a process that the model has forked, the methods touch no file and raise `Forked`.

    Args:
        destination: The path of the model; None for a model that stays in memory.

    Attributes:
        destination: As above.
    """

    def __init__(self, destination: pathlib.Path | None) -> None:
        self.destination = destination
        self._process = OwnProcess()
        self._temporary: Temporary | None = None

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._temporary is not None:
            self._temporary.remove()

    @property
    def path(self) -> pathlib.Path | None:
        """Where to write the model; None if it stays in memory. External data goes to the same folder.

        Raises:
            OSError: The folder cannot be made.
        """
        if self.destination is None:
            return None
        self.open()
        assert self._temporary is not None
        return self._temporary.path / self.destination.name

    def open(self) -> None:
        """Makes the folder if there is a destination, and removes those of dead processes. Raises OSError if it cannot make the folder."""
        self._process.check()
        if self.destination is not None and self._temporary is None:
            remove_abandoned(self.destination.parent)
            self._temporary = Temporary(self.destination.parent, make_folder)

    def commit(self, context: DiagnosticContext | None = None) -> None:
        """Moves the files to their destination, the model last: it refers to the others.

        Args:
            context: Records which files were written.

        Raises:
            OSError: A file cannot be written or moved.
        """
        if self._temporary is None or self.destination is None:
            return
        self._process.check()
        name = self.destination.name
        files = sorted(self._temporary.path.iterdir(), key=lambda path: path.name == name)
        for staged in files:
            with staged.open("rb+") as file:
                os.fsync(file)
        for staged in files:
            final = self.destination.with_name(staged.name)
            staged.replace(final)
            if context is not None:
                context.wrote(final, "resultFile", sha256(final))
        sync_folder(self.destination.parent)
