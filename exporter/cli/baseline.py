"""`onnxplain baseline`: the file of accepted findings."""

from __future__ import annotations

import pathlib
from typing import Any

import click

from onnxplain.diagnostics import InvalidArgument, accept_findings, visible

from .nearest import Group
from .outputs import check_output
from .settings import for_gate, settled
from .triage_logs import of_triages


@click.group("baseline", cls=Group)
def command() -> None:
    """Maintain the file of accepted findings.

    `onnxplain gate --baseline` compares logs with this file.
    """


@command.command("accept", epilog="Exits with 2 and changes nothing if a LOG is not a log of onnxplain or the baseline cannot be written.")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    default="onnxplain-baseline.sarif",
    show_default=True,
    help="The file to write or update.",
)
@click.pass_context
def accept_command(ctx: click.Context, /, logs: tuple[pathlib.Path, ...], **_: Any) -> None:
    """Accept the findings in each LOG, a SARIF log of onnxplain or the folder of a triage.

    They replace the accepted findings of the models in these logs; those of other models stay. Commit the file.
    """
    from onnxplain.diagnostics import make_console, show_lines

    baseline: pathlib.Path = settled(ctx, for_gate())["baseline"]
    logs, _flaky = of_triages(logs)
    check_output(baseline, "--baseline")
    try:
        accepted = accept_findings(logs, baseline)
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{visible(str(error.filename))} cannot be written: {error.strerror}") from error
    show_lines(accepted.lines(), make_console())
