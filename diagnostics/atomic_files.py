"""Files that appear whole or not at all, also where the machine stops in between."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat

from .temporary_files import Temporary, make_file


def write_file(path: pathlib.Path, text: str) -> None:
    """Writes `text` to the file that `path` leads to, whole or not at all. Makes the folders above it.

    Raises:
        OSError: The file is read-only or cannot be written; `filename` is `path`.
    """
    target = path.resolve()
    try:
        if target.exists() and not os.access(target, os.W_OK):
            # NOTE: the rename below would replace a read-only file, but its owner wants it to stay.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def replace_file(path: pathlib.Path, data: bytes, *, durable: bool = True) -> None:
    """Writes a file, whole or not at all. A file that it replaces passes on its permissions.

    Args:
        path: The file.
        data: Its content.
        durable: Whether the new content also survives a crash of the system. A crash may leave an empty file otherwise.

    Raises:
        OSError: The file cannot be written; an earlier file is unharmed.
    """
    # NOTE: viewers watch a folder for `*.sarif` and must never read half a log. The name must not reach the disk before the data does.
    # Both syncs together cost about 1 ms per file.
    held = Temporary(path.parent, make_file)
    temporary = held.path
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except BaseException:
        # NOTE: an interrupt must not leave the temporary file behind either.
        temporary.unlink(missing_ok=True)
        raise
    finally:
        held.release()
    if durable:
        _sync_folder(path.parent)


def _sync_folder(folder: pathlib.Path) -> None:
    """Brings the names in `folder` to the disk, where the system can do that."""
    if os.name != "posix":
        return
    # NOTE: the new file is complete and in place, so a file system that cannot sync folders fails nothing.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
