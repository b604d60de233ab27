"""The files that users name for the output of a command."""

from __future__ import annotations

import pathlib

import click

from onnxplain.diagnostics import check_regular


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
