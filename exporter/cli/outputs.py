"""The files that users name for the output of a command."""

from __future__ import annotations

import os
import pathlib

import click

from onnxplain.diagnostics import Log, SourceTree, check_regular


def check_output(path: pathlib.Path, option: str = "--output") -> None:
    """Refuses a path that is no place for a file, before a command does its work.

    Raises:
        click.UsageError: There is a folder, a pipe or a device, or a link that leads to itself.
    """
    try:
        check_regular(path)
    except OSError as error:
        hint = "" if option != "--output" else f" Without {option} the command writes to standard output."
        raise click.UsageError(f"{option}: expected a regular file, got {str(path)!r} ({error.strerror}).{hint}") from error


def check_unmentioned(path: pathlib.Path, log: Log, tree: SourceTree, option: str = "--output") -> None:
    """Refuses a path of a file that `log` names, such as a source or an exported model.

    Raises:
        click.UsageError: The log names it.
    """
    # NOTE: paths of missing sources and of outputs are relative to the folder of the export, which may be either.
    files = set(log.files())
    named = {os.path.realpath(folder / each) for each in files for folder in (tree.root, pathlib.Path())}
    # NOTE: of a file outside of the checkout the log has only the name, and the command may run in another folder than the export did.
    is_like_one = path.exists() and path.name in {pathlib.PurePosixPath(each).name for each in files}
    if is_like_one or os.path.realpath(path) in named:
        raise click.UsageError(f"{option}: expected a file that the log does not name, got {str(path)!r}")
