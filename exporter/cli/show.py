"""`onnxplain show`: a picture of a whole model."""

from __future__ import annotations

import os
import pathlib

import click

from onnxplain.diagnostics import replace_file, visible

from .export import complete_files
from .nearest import Choice


@click.command("show", short_help="Draw the modules and shapes of MODEL.onnx.")
@click.argument("model", metavar="MODEL.onnx", shell_complete=complete_files)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    show_default="MODEL.html",
    shell_complete=complete_files,
    help="The picture: an .html page whose boxes open, or an .svg file.",
)
@click.option(
    "--by", type=Choice(("module", "operator")), default="module", show_default=True, help="What is a box: each module, or each operator."
)
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="N", show_default="up to 40 boxes", help="How many levels of modules an .svg file shows."
)
def command(model: str, output: str | None, by: str, depth: int | None) -> None:
    """Draw the whole of MODEL.onnx: its modules with their operators and parameters, and the shapes that flow between them.

    The modules are the functions of the model (`onnxplain export --functions modules`), or those that onnxplain wrote into the metadata of
    the operators.
    """
    path = pathlib.Path(model)
    picture = path.with_suffix(".html") if output is None else pathlib.Path(output)
    if picture.suffix not in (".html", ".svg"):
        raise click.UsageError(f"--output: expected a path that ends with .html or .svg, got {output!r}")
    if os.path.realpath(picture) == os.path.realpath(path):
        raise click.UsageError(f"--output: expected another file than the model, got {output!r}")

    import onnx_ir as ir

    from onnxplain import graph_views

    try:
        loaded = ir.load(path)
    except OSError as error:
        raise click.UsageError(f"{model!r} cannot be read: {error.strerror or error}") from error
    except Exception as error:
        # NOTE: protobuf and onnx_ir raise exceptions of many types for a file that is no model.
        raise click.UsageError(f"{model!r} is no ONNX model: {visible(str(error).splitlines()[0] if str(error) else '')}") from error
    box = graph_views.of_model(path.stem, loaded, by_module=by == "module")
    text = graph_views.svg(box, depth) if picture.suffix == ".svg" else graph_views.page(box)
    try:
        replace_file(picture, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise click.ClickException(f"{str(picture)!r} cannot be written: {error.strerror or error}") from error
    click.echo(visible(f"{picture} shows the model."))
