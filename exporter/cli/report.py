"""`onnxplain report`: logs as a report, in markdown or as a page for browsers."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Sequence

import click

from onnxplain.diagnostics import Log, SourceTree, is_page, read_logs, visible, write_file

from .outputs import check_output, check_unmentioned

_COMMANDS = re.compile(r"^([ \t]*)(::|##\[)", re.MULTILINE)


@click.command(
    "report",
    epilog="""\b
Examples:
  onnxplain report net.sarif                    markdown, for an issue on GitHub
  onnxplain report .sarif --html page.html      a page on all logs in the folder .sarif
  onnxplain report .sarif --against old --html page.html -o summary.md

Exits with 2 if a LOG is not a log of onnxplain.""",
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="The file to write, a page if it ends with .html.  [default: standard output]",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="Write a page for browsers to this file, and markdown only if --output is given as well.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="OLD",
    type=click.Path(path_type=pathlib.Path),
    help="A log of an earlier run, or a folder of such logs: the report tells what changed. May be given several times.",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path),
    help="Quote only files below this folder.  [default: the git checkout around the current folder, or else that folder]",
)
def command(
    logs: tuple[pathlib.Path, ...],
    output: pathlib.Path | None,
    html: pathlib.Path | None,
    against: tuple[pathlib.Path, ...],
    root: pathlib.Path | None,
) -> None:
    """Render each LOG in one report.

    Each LOG is a SARIF log of onnxplain, or a folder of such logs. The report on one log is what `onnxplain export --report` writes. The
    report on several begins with the causes that block the most models. Markdown is short enough for an issue or a job summary on GitHub. A
    page has everything, in one file that loads nothing from a network.
    """
    outputs = {"--output": output, "--html": html}
    for option, path in outputs.items():
        if path is not None:
            _check(option, path, (*logs, *against))
    if output is not None and html is not None and os.path.realpath(output) == os.path.realpath(html):
        raise click.UsageError(f"--html: expected a file other than that of --output, got {str(html)!r}")
    tree = SourceTree.around(root)
    restored = read_logs(logs, tree)
    earlier = read_logs(against, tree) if against else None
    for option, path in outputs.items():
        if path is not None:
            for log in (*restored, *(earlier or ())):
                check_unmentioned(path, log, tree, option)
            _write(path, _rendered(restored, earlier, page=option == "--html" or is_page(path)))
    if output is None and html is None:
        # NOTE: a runner of GitHub Actions obeys lines of the output that begin like this. A backslash of markdown shows nothing.
        click.echo(_COMMANDS.sub(r"\1\\\2", _rendered(restored, earlier, page=False)), nl=False)


def _check(option: str, path: pathlib.Path, logs: Sequence[pathlib.Path]) -> None:
    """Refuses to write a report to `path` if that is a log, or lies where no file can be."""
    if os.path.realpath(path) in map(os.path.realpath, logs):
        raise click.UsageError(f"{option}: expected a file other than the logs, got {str(path)!r}")
    if path.suffix.lower() == ".sarif":
        # NOTE: in a folder of logs, the next report would read it.
        raise click.UsageError(f"{option}: expected a name that does not end with .sarif, got {str(path)!r}")
    check_output(path, option)


def _rendered(logs: Sequence[Log], earlier: Sequence[Log] | None, *, page: bool) -> str:
    from onnxplain.diagnostics import html, job_summary, markdown

    if page:
        return html.to_html(logs, earlier)
    if len(logs) == 1 and earlier is None:
        return markdown.to_markdown(logs[0])
    return job_summary.to_markdown(logs, earlier)


def _write(path: pathlib.Path, text: str) -> None:
    try:
        write_file(path, text)
    except OSError as error:
        raise click.ClickException(f"{visible(str(path))} cannot be written: {error.strerror}") from error
