"""`onnxplain report`: a log as a markdown report."""

from __future__ import annotations

import pathlib

import click

from onnxplain.diagnostics.read import read


@click.command("report")
@click.argument("log", type=click.Path(path_type=pathlib.Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="Where to save it; printed by default.")
def command(log: pathlib.Path, output: pathlib.Path | None) -> None:
    """Render LOG, a SARIF log of onnxplain, as a markdown report.

    It is the one that `onnxplain export --report` writes: short enough for an issue on GitHub. Exits with 2 when LOG is no log of
    onnxplain.
    """
    if output is not None and output.absolute() == log.absolute():
        raise click.UsageError(f"--output: expected another file than the log, got {str(output)!r}")
    found = read(log)

    from onnxplain.diagnostics import markdown

    if output is None:
        click.echo(markdown.to_markdown(found), nl=False)
        return
    try:
        markdown.write(found, output)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from error
