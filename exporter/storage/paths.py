"""Paths that a user gives: whether a file can be written there."""

from __future__ import annotations

import os
import pathlib
import stat
import tempfile

from onnxplain.diagnostics import InvalidArgument


def checked_path(argument: str, value: object, *, make_folder: bool = False) -> pathlib.Path:
    """The path of the file to write that `value` leads to, by links, too; makes its folder if asked.

    Raises:
        InvalidArgument: `value` is no path, or something is there that is no regular file. The text names `argument`.
    """
    if not isinstance(value, str | os.PathLike):
        raise InvalidArgument(f"{argument}: expected a path, got {value!r}")
    path = pathlib.Path(value)
    try:
        path = path.resolve() if path.is_symlink() else path
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except (OSError, RuntimeError, ValueError) as error:
        # NOTE: a name that is too long, links that lead back to themselves (a RuntimeError before Python 3.13), a NUL.
        raise not_written(argument, str(path), error) from error
    if not stat.S_ISREG(mode):
        raise InvalidArgument(f"{argument}: expected a file, got the {'folder' if stat.S_ISDIR(mode) else 'pipe or device'} {str(path)!r}")
    if make_folder:
        checked_folder(argument, path.parent)
    return path


def checked_folder(argument: str, value: object) -> pathlib.Path:
    """`value` as a folder to write to, made if it is not there. Raises `InvalidArgument` that names `argument`."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidArgument(f"{argument}: expected a path, got {value!r}")
    folder = pathlib.Path(value)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{argument}: expected a folder that can be written to, got {str(folder)!r} ({_why(error)})") from error
    return folder


def not_written(argument: str, path: str, error: Exception) -> InvalidArgument:
    """What to raise when a file could not be written."""
    return InvalidArgument(f"{argument}: expected a file that can be written, got {path!r} ({_why(error)})")


def _why(error: Exception) -> object:
    return getattr(error, "strerror", None) or error
