"""`onnxplain gate`: whether logs hold more new findings than they may."""

from __future__ import annotations

import pathlib

import click

from onnxplain.diagnostics import InvalidArgument
from onnxplain.diagnostics.text import visible

_FORMATS = ("text", "github", "junit", "gitlab", "json")


@click.command(
    "gate",
    epilog="""\b
    Exit codes:
      0  there are no more new findings than there may be
      1  there are
      2  no verdict: bad usage, a log that cannot be read or judged, a file that cannot be written, interrupted""",
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--baseline", type=click.Path(path_type=pathlib.Path), help="What `onnxplain baseline accept` wrote, or an earlier log.")
@click.option("--max-errors", type=click.IntRange(min=0), default=0, show_default=True, help="How many new errors may be.")
@click.option("--max-warnings", type=click.IntRange(min=0), help="How many new warnings may be.  [default: any number]")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True, help="What to print.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="Where to save it; printed by default.")
@click.pass_context
def command(
    ctx: click.Context,
    logs: tuple[pathlib.Path, ...],
    baseline: pathlib.Path | None,
    max_errors: int,
    max_warnings: int | None,
    form: str,
    output: pathlib.Path | None,
) -> None:
    """Count the findings in each LOG, a SARIF log of onnxplain, that are new against the baseline.

    Findings that the source suppresses do not count. A finding whose line moved is the same; of equal ones, those beyond the number in the
    baseline are new, and so is one whose level rose. With --baseline the logs are told what is new, what stays and what was fixed
    (`baselineState`). Several logs are one gate.
    """
    if output is not None and output.resolve() in [path.resolve() for path in (*logs, baseline) if path is not None]:
        raise click.UsageError(f"--output: expected another file than the logs and the baseline, got {str(output)!r}")

    from onnxplain.diagnostics import atomic, verdicts
    from onnxplain.diagnostics.console import make_console, show_lines
    from onnxplain.diagnostics.gate import judge

    try:
        verdict = judge(logs, baseline, max_errors=max_errors, max_warnings=max_warnings)
        report = verdicts.REPORTS[form](verdict)
        if output is not None:
            atomic.write(output, report)
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{visible(str(error.filename))} cannot be written: {error.strerror}") from error
    if output is not None:
        show_lines([verdicts.summary(verdict)], make_console())
    elif form == "text":
        show_lines(verdicts.lines(verdict), make_console())
    else:
        click.echo(report, nl=False)
        if form != "github":
            # What reads the report from a pipe leaves the log of the job without a verdict.
            click.echo(verdicts.summary(verdict)[0][0], err=True)
    ctx.exit(0 if verdict.passed else 1)
