"""The paths that a user passes: whether a file can be written there."""

from __future__ import annotations

import os
import pathlib
import stat
import tempfile

from onnxplain.diagnostics import InvalidArgument


def checked_path(argument: str, value: object, *, make_folder: bool = False) -> pathlib.Path:
    """The path of the file to write, after links are followed.

    Args:
        argument: The argument that `value` was passed for; exceptions name it.
        value: A path.
        make_folder: Whether to make the folder that the file will be in.

    Raises:
        InvalidArgument: `value` is no path, or there is something at it that is no regular file, or the folder cannot be written to.
    """
    path = _as_path(argument, value)
    try:
        path = path.resolve() if path.is_symlink() else path
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except (OSError, RuntimeError, ValueError) as error:
        # NOTE: a name that is too long, links that lead back to themselves (a RuntimeError before Python 3.13), a NUL character.
        raise not_written(argument, str(path), error) from error
    if not stat.S_ISREG(mode):
        raise InvalidArgument(f"{argument}: expected a file, got the {'folder' if stat.S_ISDIR(mode) else 'pipe or device'} {str(path)!r}")
    if make_folder:
        checked_folder(argument, path.parent)
    return path


def current_folder_exists() -> bool:
    """Whether there is a current folder: somebody may have removed it."""
    try:
        pathlib.Path.cwd()
    except OSError:
        return False
    return True


def data_file(model: pathlib.Path) -> pathlib.Path:
    """The file beside a model that holds its weights, where they do not fit into the model or shall not be in it."""
    return model.with_name(f"{model.name}.data")


def checked_folder(argument: str, value: object) -> pathlib.Path:
    """`value` as a folder to write to; makes it if it does not exist.

    Args:
        argument: The argument that `value` was passed for; exceptions name it.
        value: A path.

    Raises:
        InvalidArgument: `value` is no path, or the folder cannot be made or written to.
    """
    folder = _as_path(argument, value)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{argument}: expected a folder that can be written to, got {str(folder)!r} ({_reason(error)})") from error
    return folder


def not_written(argument: str, path: str, error: Exception) -> InvalidArgument:
    """The exception to raise after a file could not be written."""
    return InvalidArgument(f"{argument}: expected a file that can be written, got {path!r} ({_reason(error)})")


def _as_path(argument: str, value: object) -> pathlib.Path:
    if not isinstance(value, str | os.PathLike):
        raise InvalidArgument(f"{argument}: expected a path, got {value!r}")
    # NOTE: the model's code may change the current folder before the file is written.
    return pathlib.Path(value).absolute() if current_folder_exists() else pathlib.Path(value)


def _reason(error: Exception) -> object:
    return getattr(error, "strerror", None) or error
