"""Files that appear whole or not at all, also where the machine stops in between."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
import sys
from typing import BinaryIO

from .temporary_files import Temporary, is_held, make_file, temporary_name


def write_file(path: pathlib.Path, text: str) -> None:
    """Writes `text` to the file that `path` leads to, whole or not at all. Makes the folders above it.

    Raises:
        OSError: The file is read-only, no regular file or cannot be written; `filename` is `path`.
    """
    try:
        check_regular(path)
        target = pathlib.Path(os.path.realpath(path))
        if target.exists() and not os.access(target, os.W_OK):
            # NOTE: the rename below would replace a read-only file, but its owner wants it to stay.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def check_regular(path: pathlib.Path) -> None:
    """Makes sure that there is a regular file at `path`, or nothing: to replace a pipe or a device would break other programs.

    Raises:
        OSError: There is something else; `filename` is `path`.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is a {'folder' if stat.S_ISDIR(mode) else 'pipe or device'}", str(path))


def replace_file(path: pathlib.Path, data: bytes, *, durable: bool = True) -> None:
    """Writes a file, whole or not at all. A file that it replaces passes on its permissions.

    It also passes on its owner, its group and its extended attributes, where the system allows that.

    Args:
        path: The file.
        data: Its content.
        durable: Whether the new content also survives a crash of the system. A crash may leave an empty file otherwise.

    Raises:
        OSError: The file cannot be written, or is no regular file; an earlier file is unharmed.
    """
    check_regular(path)
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
            _take_after(temporary, path)
        temporary.replace(path)
    except BaseException:
        # NOTE: an interrupt must not leave the temporary file behind either.
        temporary.unlink(missing_ok=True)
        raise
    finally:
        held.release()
    if durable:
        sync_folder(path.parent)


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class Prepared:
    """The new content of a file, on the disk beside it. `replace` puts it in place, `discard` removes it.

    Args:
        path: An existing file. No folder above it may be a link, and none may become one before the end.
        data: The new content.

    Raises:
        OSError: The content cannot be written, or there is a link.
    """

    def __init__(self, path: pathlib.Path, data: bytes) -> None:
        self._path = path
        # NOTE: what another program makes of the folders' names from now on does not lead elsewhere.
        self._folder = _opened_folder(path.parent)
        self._name, self._file = "", -1
        try:
            self._name, self._file = self._new()
        except BaseException:
            # NOTE: the folder is open.
            self._close()
            raise
        try:
            with os.fdopen(self._file, "wb", closefd=False) as file:
                file.write(data)
                file.flush()
                os.fsync(self._file)
            with self._opened() as old:
                _take_after(self._file if sys.platform != "win32" else self._path.parent / self._name, old.fileno())
        except BaseException:
            # NOTE: whatever ends it, the temporary file goes.
            self.discard()
            raise

    def current(self) -> bytes:
        """What the file contains now. Raises OSError if it is gone or no regular file any more."""
        with self._opened() as file:
            return file.read()

    def replace(self) -> None:
        """Puts the content in place. Raises OSError if it cannot; the earlier content is unharmed then."""
        try:
            if sys.platform == "win32":
                # NOTE: Windows renames no open file.
                os.close(self._file)
                self._file = -1
            os.replace(self._at(self._name), self._at(self._path.name), src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            # NOTE: whatever ends it, the temporary file goes.
            self.discard()
            raise
        if self._folder is not None:
            # NOTE: the new file is in place, so a file system that cannot sync folders fails nothing.
            with contextlib.suppress(OSError):
                os.fsync(self._folder)
        self._close()

    def discard(self) -> None:
        """Removes the content, unless it is in place."""
        if self._name:
            with contextlib.suppress(OSError):
                os.unlink(self._at(self._name), dir_fd=self._folder)
        self._close()

    def _new(self) -> tuple[str, int]:
        while True:
            name = temporary_name()
            file = os.open(self._at(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY, 0o600, dir_fd=self._folder)
            # NOTE: another process may have removed it before this one held it.
            if is_held(file):
                return name, file
            os.close(file)

    def _opened(self) -> BinaryIO:
        found = os.stat(self._at(self._path.name), dir_fd=self._folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(self._path))
        return os.fdopen(os.open(self._at(self._path.name), os.O_RDONLY | _NO_LINK | _BINARY, dir_fd=self._folder), "rb")

    def _at(self, name: str) -> str:
        """`name` in the folder, for calls with `dir_fd`."""
        return str(self._path.parent / name) if self._folder is None else name

    def _close(self) -> None:
        for handle in (self._file, self._folder):
            if handle is not None and handle >= 0:
                os.close(handle)
        self._name, self._file = "", -1
        self._folder = None


def _opened_folder(folder: pathlib.Path) -> int | None:
    """The absolute `folder`, without following links. None where the system opens no folders."""
    if os.open not in os.supports_dir_fd:
        return None
    handle = os.open(folder.anchor, os.O_RDONLY)
    for height, name in reversed(list(enumerate(reversed(folder.parts[1:])))):
        try:
            # NOTE: a user may enter folders above without the right to list them.
            kind = getattr(os, "O_PATH", os.O_RDONLY) if height else os.O_RDONLY
            below = os.open(name, kind | _NO_LINK | os.O_DIRECTORY, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle


def _take_after(new: pathlib.Path | int, old: pathlib.Path | int) -> None:
    """Gives a file the owner, the group, the extended attributes and the permissions of another one. Both may be open ones."""
    before = os.stat(old)  # noqa: PTH116  it may be a descriptor
    if sys.platform != "win32":
        # NOTE: only root may give a file away, and others only to their own groups. What is refused stays as it is.
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with contextlib.suppress(OSError):
                os.chown(new, owner, group)
    if sys.platform == "linux":
        # NOTE: not every file system has them, and some may be set by the system alone.
        with contextlib.suppress(OSError):
            for name in os.listxattr(old):
                with contextlib.suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name))
    # NOTE: a new owner would take the set-user-ID bit away, so the permissions come last.
    os.chmod(new, stat.S_IMODE(before.st_mode))  # noqa: PTH101  as above


def sync_folder(folder: pathlib.Path) -> None:
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
