"""The process that began an export. A process that the model forks runs on in the export, but the export's files are not its own."""

from __future__ import annotations

import os

from .errors import Interruption


class Forked(Interruption):
    """Ends an export in a process that the model has forked."""

    def __init__(self) -> None:
        super().__init__(
            "An export goes on only in the process that began it, and this process was forked meanwhile: the code of the model has to "
            "end it, for example with os._exit."
        )


class OwnProcess:
    """The process that makes this object. Who writes files of an export asks it first."""

    def __init__(self) -> None:
        self._number = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is still that process, and none that was forked from it."""
        return os.getpid() == self._number

    def check(self) -> None:
        """Raises `Forked` in a process that was forked meanwhile."""
        if not self.is_here:
            raise Forked
