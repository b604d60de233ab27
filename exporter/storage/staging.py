"""Files of an export while it is not known yet whether it succeeds."""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import tempfile
from types import TracebackType

from onnxplain.diagnostics import DiagnosticContext


class Staging:
    """Files of one export while it is not known yet whether it succeeds: in a folder beside the destination, moved there by `commit`.

    Args:
        destination: Where the model will be; None keeps it in memory.
    """

    def __init__(self, destination: pathlib.Path | None) -> None:
        self.destination = destination
        self._folder: pathlib.Path | None = None

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def path(self) -> pathlib.Path | None:
        """Where to write the model; None when it stays in memory. Weights in files of their own go to the same folder."""
        if self.destination is None:
            return None
        self.open()
        assert self._folder is not None
        return self._folder / self.destination.name

    def open(self) -> None:
        """Makes the folder, if there is a destination. Raises OSError where nothing can be written."""
        if self.destination is not None and self._folder is None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix=".onnxplain-", dir=self.destination.parent))

    def commit(self, context: DiagnosticContext | None = None) -> None:
        """Moves the files to their destination, the model last: it refers to the others. `context` gets to know what was written."""
        if self._folder is None or self.destination is None:
            return
        name = self.destination.name
        for staged in sorted(self._folder.iterdir(), key=lambda path: path.name == name):
            final = self.destination.with_name(staged.name)
            staged.replace(final)
            if context is not None:
                context.wrote(final, "resultFile", sha256(final))


def sha256(path: pathlib.Path) -> str:
    """The hash of a file, in hex."""
    with path.open("rb") as file:
        if hasattr(hashlib, "file_digest"):
            return str(hashlib.file_digest(file, "sha256").hexdigest())
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest()
