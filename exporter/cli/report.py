"""`onnxplain report`: a log as a markdown report."""

from __future__ import annotations

import os
import pathlib

import click

from onnxplain.diagnostics import SourceTree, read_log, visible, write_file

from .outputs import check_output, check_unmentioned


@click.command("report", epilog="Exits with 2 if LOG is not a log of onnxplain.")
@click.argument("log", type=click.Path(path_type=pathlib.Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The file to write.  [default: standard output]"
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path),
    help="Quote only files below this folder.  [default: the git checkout around the current folder, or else that folder]",
)
def command(log: pathlib.Path, output: pathlib.Path | None, root: pathlib.Path | None) -> None:
    """Render LOG as a markdown report.

    LOG is a SARIF log of onnxplain. `onnxplain export --report` writes the same report. It is short enough for an issue on GitHub.
    """
    if output is not None:
        if os.path.realpath(output) == os.path.realpath(log):
            raise click.UsageError(f"--output: expected a file other than the log, got {str(output)!r}")
        check_output(output)
    tree = SourceTree.around(root)
    restored = read_log(log, tree)

    from onnxplain.diagnostics import markdown

    if output is None:
        click.echo(markdown.to_markdown(restored), nl=False)
        return
    check_unmentioned(output, restored, tree)
    try:
        write_file(output, markdown.to_markdown(restored))
    except OSError as error:
        raise click.ClickException(f"{visible(str(output))} cannot be written: {error.strerror}") from error
