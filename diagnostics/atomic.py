"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import uuid


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
        replace(target, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def replace(path: pathlib.Path, data: bytes) -> None:
    """Writes a file, whole or not at all; what was there before leaves its permissions.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    # NOTE: viewers watch a folder for `*.sarif` and must not meet half of one.
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
