"""`onnxplain memory`: where the memory of a model's activations goes."""

from __future__ import annotations

import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from onnxplain.diagnostics import OnnxExporterError, visible, visible_lines

from . import inputs, job
from .export import complete_targets
from .imports import imports_beside
from .outputs import check_output

if TYPE_CHECKING:
    import onnx_ir as ir

    from onnxplain.memory import MemoryEstimate


def sizes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """The sizes of `--size`."""
    found: dict[str, int] = {}
    for value in values:
        for part in value.split(","):
            name, _, size = part.rpartition("=")
            if not name.strip() or not size.strip().isdecimal():
                raise click.BadParameter(f"expected NAME=SIZE, such as batch=4, got {part!r}.", ctx, param)
            found[name.strip()] = int(size)
    return found


@click.command("memory", short_help="Estimate the memory of a model's activations.")
@click.argument("target", metavar="TARGET|MODEL.onnx", shell_complete=complete_targets)
@click.option("--size", "given", metavar="NAME=SIZE", multiple=True, callback=sizes, help="The size of a dynamic dim. Repeat for each dim.")
@click.option(
    "--input",
    "described",
    metavar="NAME=DTYPE[SIZE,...]",
    multiple=True,
    callback=inputs.inputs,
    help="An example input, as for `onnxplain export`, for a TARGET without inputs.",
)
@click.option(
    "--optimize-memory", is_flag=True, help="Compute large tensors that a reduction soon collapses in chunks, as `onnxplain export` does."
)
@click.option("--plot", metavar="PATH", type=click.Path(path_type=pathlib.Path), help="Also draw the timeline, into an .svg or .png file.")
def command(
    target: str, given: Mapping[str, int], described: tuple[inputs.Input, ...], optimize_memory: bool, plot: pathlib.Path | None
) -> None:
    """Estimate where the memory of a model's activations goes, from the shapes alone.

    TARGET is as for `onnxplain export`; the sizes of dynamic dims are those of the example inputs, or of --size. MODEL.onnx is a model that
    exists already. It need not come from onnxplain, but only then the lines of the source are known.

    The command lists the peak, the tensors in memory then and the timeline. It follows ONNX Runtime's plan for the CPU, whose optimizer may
    need more or less.
    """
    if plot is not None:
        check_output(plot, "--plot")
    if target.endswith(".onnx"):
        if described or optimize_memory:
            raise click.UsageError("--input and --optimize-memory: expected a TARGET, got a model that is exported already.")
        found = _of_file(pathlib.Path(target), given)
    else:
        source = job.parts(target)[0]
        with imports_beside(pathlib.Path(source).absolute().parent if source.endswith(".py") else pathlib.Path.cwd()):
            found = _of_target(target, given, described, optimize_memory=optimize_memory)

    from onnxplain.memory import draw, listing

    click.echo(visible_lines(listing(found)), nl=False)
    if plot is not None:
        try:
            draw(found, plot, target)
        except OnnxExporterError as error:
            raise click.UsageError(f"--plot: {error}") from error
        except OSError as error:
            raise click.ClickException(f"{visible(str(plot))} cannot be written: {error.strerror}") from error


def _of_target(target: str, given: Mapping[str, int], described: tuple[inputs.Input, ...], *, optimize_memory: bool) -> MemoryEstimate:
    import onnxplain

    from .target import load

    loaded = inputs.with_inputs(load(*job.parts(target), with_inputs=bool(described)), described, ())
    options: dict[str, Any] = {"kwargs": loaded.kwargs, "dynamic_shapes": loaded.dynamic_shapes}
    try:
        program = onnxplain.export(loaded.model, loaded.args, optimize="memory" if optimize_memory else True, **options)
    except onnxplain.ExportFailed as failed:
        raise click.ClickException(f"The model cannot be exported; `onnxplain export` tells more. {failed}") from failed
    except OnnxExporterError as error:
        raise click.UsageError(str(error)) from error
    try:
        return program.memory(**given)
    except OnnxExporterError as error:
        raise click.UsageError(f"--size: {error}") from error


def _of_file(path: pathlib.Path, given: Mapping[str, int]) -> MemoryEstimate:
    from onnxplain.memory import estimate

    model = loaded_model(path)
    return estimate(model, checked_sizes(model, given))


def loaded_model(path: pathlib.Path) -> ir.Model:
    """The model in a file."""
    import onnx_ir as ir

    try:
        return ir.load(path)
    except OSError as error:
        raise click.UsageError(f"{visible(str(path))} cannot be read: {error.strerror}") from error
    except Exception as error:
        # NOTE: protobuf and onnx_ir raise many exceptions for a file that is no model.
        raise click.UsageError(f"{visible(str(path))} is not an ONNX model.") from error


def checked_sizes(model: ir.Model, given: Mapping[str, int]) -> Mapping[str, int]:
    """The sizes, if they are those of the model's dynamic dims. Raises `UsageError`."""
    from onnxplain.memory import dims_of

    dims = dims_of(model)
    if given.keys() != set(dims):
        example = " ".join(shlex.join(["--size", f"{name}={given.get(name, 1)}"]) for name in dims)
        expected = f"a size for each dynamic dim, such as {example}" if dims else "no size, since the model has no dynamic dims"
        raise click.UsageError(f"--size: expected {expected}, got {', '.join(given) or 'none'}")
    return given
