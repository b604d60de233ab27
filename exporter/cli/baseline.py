"""`onnxplain baseline`: the file of accepted findings."""

from __future__ import annotations

import pathlib

import click

from onnxplain.diagnostics import InvalidArgument
from onnxplain.diagnostics.text import visible


@click.group("baseline")
def command() -> None:
    """Keep the file of accepted findings, which `onnxplain gate --baseline` compares with."""


@command.command("accept", epilog="Exits with 2 when a LOG is no log of onnxplain or the baseline cannot be written; nothing changes then.")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    default="onnxplain-baseline.sarif",
    show_default=True,
    help="The file to write or to update.",
)
def accept_command(logs: tuple[pathlib.Path, ...], baseline: pathlib.Path) -> None:
    """Accept the findings in each LOG, a SARIF log of onnxplain.

    They replace what the baseline has for the models of these logs; other models stay as they are. The file is meant to be committed.
    """
    from onnxplain.diagnostics import verdicts
    from onnxplain.diagnostics.baseline import accept
    from onnxplain.diagnostics.console import make_console, show_lines

    try:
        compared = accept(logs, baseline)
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{visible(str(error.filename))} cannot be written: {error.strerror}") from error
    show_lines(verdicts.accepted(compared, baseline), make_console())
