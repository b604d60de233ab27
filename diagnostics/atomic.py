"""Text files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import pathlib

from . import sarif


def write(path: pathlib.Path, text: str) -> None:
    """Writes `text` to the file that `path` leads to, whole or not at all.

    Raises:
        OSError: It cannot be written, or is read-only; `filename` is `path`.
    """
    target = path.resolve()
    try:
        if target.exists() and not os.access(target, os.W_OK):
            # NOTE: to be replaced, a file need not be writable; but that it is not says what its owner wants.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        target.parent.mkdir(parents=True, exist_ok=True)
        sarif.replace(target, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
