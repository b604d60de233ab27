"""Temporary files beside those that they become. A killed process leaves them behind, and the next export removes them."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import stat
import sys
from collections.abc import Callable

from .own_process import OwnProcess

if sys.platform != "win32":
    import fcntl

_NAME = re.compile(r"\.onnxplain-\w+\.tmp")


class Temporary:
    """A new temporary file or folder. Other processes leave it alone until `release`, or until this process ends.

    Args:
        parent: The folder that it lies in.
        make: Makes it at a path, or raises FileExistsError.

    Attributes:
        path: Its path.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, parent: pathlib.Path, make: Callable[[pathlib.Path], None]) -> None:
        self._held: tuple[int, os.stat_result] | None = None
        self._process = OwnProcess()
        while True:
            self.path = parent / temporary_name()
            make(self.path)
            # NOTE: another process may have removed it before this one held it.
            with contextlib.suppress(FileNotFoundError):
                self._held = _hold(self.path)
                return

    def remove(self) -> None:
        """Removes the folder and releases it. In a process that the model has forked, the folder stays: it belongs to the parent."""
        # NOTE: a file that stays behind harms nobody. An error here would replace the one that ended the export.
        if self._process.is_here:
            shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Tells other processes that nobody uses it any more."""
        if self._held is not None:
            descriptor, held = self._held
            self._held = None
            # NOTE: the code of a model may have closed it with all others, and another file may have its number now.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), held):
                    os.close(descriptor)


def temporary_name() -> str:
    """A new name for a temporary file or folder."""
    return f".onnxplain-{os.urandom(16).hex()}.tmp"


def is_held(descriptor: int) -> bool:
    """Marks a new file as in use while `descriptor` is open. False if another process has removed the file."""
    if sys.platform == "win32":
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def make_file(path: pathlib.Path) -> None:
    """Makes an empty file."""
    path.touch(exist_ok=False)


def make_folder(path: pathlib.Path) -> None:
    """Makes a folder that only its owner can enter."""
    path.mkdir(mode=0o700)


def _hold(path: pathlib.Path) -> tuple[int, os.stat_result] | None:
    """Marks a file or folder as in use, until the process ends or closes this descriptor. None where the file system has no such marks."""
    if sys.platform == "win32":
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        os.close(descriptor)
        return None
    try:
        held = os.fstat(descriptor)
        if path.stat().st_ino == held.st_ino:
            return descriptor, held
        raise FileNotFoundError(path)
    except FileNotFoundError:
        os.close(descriptor)
        raise


def remove_abandoned(folder: pathlib.Path) -> None:
    """Removes the temporary files in `folder` that dead processes left, and never those of a living one."""
    if sys.platform == "win32":
        return
    # NOTE: this is a courtesy, which fails no export.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_unless_held(pathlib.Path(entry.path))


def _remove_unless_held(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        # NOTE: in a folder that everybody may write to, such as that for temporary files, others have files of that name.
        if os.fstat(descriptor).st_uid != os.geteuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
