"""`onnxplain gate`: whether logs hold more new findings than the limits allow."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import click

from onnxplain.diagnostics import GATE_FORMATS, InvalidArgument, SourceTree, judge_logs, read_log, visible, write_file

from .nearest import Choice
from .outputs import check_output, check_unmentioned
from .settings import for_gate, settled
from .triage_logs import of_triages

_WIDTH = max(map(len, GATE_FORMATS))
_FORMAT_LINES = "\n".join(f"  {each.name:<{_WIDTH}}  {each.summary}" for each in GATE_FORMATS.values())


@click.command(
    "gate",
    epilog=f"""\b
Formats:
{_FORMAT_LINES}

\b
Exit codes:
  0  passed: the limits allow the new findings
  1  failed: there are more new findings than the limits allow
  2  no verdict: wrong usage, a log that cannot be read or judged, a file that cannot be written, an interrupt""",
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--baseline", type=click.Path(path_type=pathlib.Path), help="A file of `onnxplain baseline accept`, or an earlier log.")
@click.option("--max-errors", type=click.IntRange(min=0), default=0, show_default=True, help="The limit for new errors.")
@click.option("--max-warnings", type=click.IntRange(min=0), show_default="none", help="The limit for new warnings.")
@click.option("--format", type=Choice(tuple(GATE_FORMATS)), default="text", show_default=True, help="What to print.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The file to write.  [default: standard output]"
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    logs: tuple[pathlib.Path, ...],
    output: pathlib.Path | None,
    **_: Any,
) -> None:
    """Pass or fail the new findings in each LOG.

    Each LOG is a SARIF log of onnxplain, or the folder of a triage: findings that come and go between two exports of one input are flaky
    there, and count neither as new nor as fixed. Only new findings count, and none that the source suppresses. With --baseline, a finding
    is new if the baseline lacks it: it may move to another line, but a raised level makes it new, and of several equal findings those
    beyond the baseline's number are new. The command writes into the logs what is new, known and fixed (`baselineState`). Several logs are
    judged together. The section [tool.onnxplain.gate] of pyproject.toml also sets options; see `onnxplain config`.
    """
    params = settled(ctx, for_gate())
    baseline: pathlib.Path | None = params["baseline"]
    logs, flaky = of_triages(logs)
    if output is not None:
        if os.path.realpath(output) in [os.path.realpath(path) for path in (*logs, baseline) if path is not None]:
            raise click.UsageError(f"--output: expected a file other than the logs and the baseline, got {str(output)!r}")
        check_output(output)
        tree = SourceTree.around()
        for log in logs:
            check_unmentioned(output, read_log(log, tree), tree)
    if baseline is not None:
        # NOTE: the gate writes into the logs.
        for log in logs:
            check_output(log, "LOG")

    from onnxplain.diagnostics import make_console, show_lines
    from onnxplain.rules import OutputReplaced

    chosen = GATE_FORMATS[params["format"]]
    try:
        verdict = judge_logs(
            logs,
            baseline,
            max_errors=params["max_errors"],
            max_warnings=params["max_warnings"],
            replaced_output=lambda path: OutputReplaced(path=path),
            flaky=flaky,
        )
        report = chosen.render(verdict)
        if output is not None:
            write_file(output, report)
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{visible(str(error.filename))} cannot be written: {error.strerror}") from error
    if output is not None:
        show_lines([verdict.headline()], make_console())
    elif chosen.name == "text":
        show_lines(verdict.lines(), make_console())
    else:
        click.echo(report, nl=False)
        if not chosen.says_verdict:
            # A program reads the report from a pipe; the log of the job needs the verdict as well.
            click.echo(verdict.summary, err=True)
    ctx.exit(0 if verdict.passed else 1)
