"""`onnxplain profile`: where the time and the memory of a run go."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from onnxplain.diagnostics import OnnxExporterError, visible, visible_lines

from .export import complete_files
from .memory import checked_sizes, loaded_model, sizes
from .nearest import Choice

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch


@click.command("profile", short_help="List where MODEL.onnx spends time and memory.")
@click.argument("path", metavar="MODEL.onnx", type=click.Path(path_type=pathlib.Path), shell_complete=complete_files)
@click.option(
    "--inputs",
    "arrays",
    metavar="PATH.npz",
    type=click.Path(path_type=pathlib.Path),
    help="The inputs, by name, as numpy.savez writes them.  [default: made from the model's dtypes and shapes]",
)
@click.option("--size", "given", metavar="NAME=SIZE", multiple=True, callback=sizes, help="The size of a dynamic dim of made inputs.")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="How often the model runs.")
@click.option("--format", "form", type=Choice(("text", "csv")), default="text", show_default=True, help="How to print the tables.")
def command(path: pathlib.Path, arrays: pathlib.Path | None, given: Mapping[str, int], runs: int, form: str) -> None:
    """Run MODEL.onnx in ONNX Runtime, and list where the time and the memory go: by operator, by line of the source and by module.

    Lines and modules are known for models that onnxplain exported. The numbers are those of one run, without what happens in graphs of an
    operator, such as the body of a loop. Self memory is the size of all tensors that an operator makes.
    """
    import numpy as np

    model = loaded_model(path)
    if arrays is None:
        inputs = _made(model, checked_sizes(model, given))
    else:
        if given:
            raise click.UsageError("--size: expected none beside --inputs, whose arrays have sizes.")
        try:
            with np.load(arrays) as read:
                known = {name: read[name] for name in read.files}
        except (OSError, ValueError, AttributeError) as error:
            raise click.UsageError(f"--inputs: expected arrays as numpy.savez writes them, got {visible(str(arrays))!r}") from error
        inputs = _taken(model, known)

    from onnxplain.runtime import profile
    from onnxplain.storage import write

    try:
        found = profile(model, inputs, path=path, runs=runs, write=functools.partial(write, external_data=True))
    except OnnxExporterError:
        raise
    except Exception as error:
        # NOTE: the exceptions of ONNX Runtime have no common base class but Exception.
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        raise click.ClickException(f"ONNX Runtime cannot run the model: {error}") from error
    click.echo(found.to_csv() if form == "csv" else visible_lines(str(found)), nl=False)


def _inputs(model: ir.Model) -> list[ir.Value]:
    return [value for value in model.graph.inputs if value.name not in model.graph.initializers]


def _taken(model: ir.Model, arrays: Mapping[str, object]) -> list[torch.Tensor]:
    """The arrays in the order of the model's inputs."""
    import torch

    names = [value.name or "" for value in _inputs(model)]
    if set(names) != set(arrays):
        raise click.UsageError(f"--inputs: expected the arrays {', '.join(names)}, got {', '.join(arrays)}")
    return [torch.from_numpy(arrays[name]) for name in names]


def _made(model: ir.Model, sizes: Mapping[str, int]) -> list[torch.Tensor]:
    """Normally distributed floats, and zeros and ones for all other dtypes, the same in each run."""
    import torch
    from onnx_ir.tensor_adapters import to_torch_dtype

    from onnxplain.memory import size_of

    generator = torch.Generator().manual_seed(0)
    made = []
    for value in _inputs(model):
        dims = [size_of(dim, sizes) for dim in value.shape or ()]
        shape = [dim for dim in dims if dim is not None]
        if value.shape is None or value.dtype is None or len(shape) != len(dims):
            raise click.UsageError(f"--inputs: expected arrays, since the model does not tell the shape of {visible(str(value.name))}")
        dtype = to_torch_dtype(value.dtype)
        random = torch.randn(shape, generator=generator) if dtype.is_floating_point else torch.randint(0, 2, shape, generator=generator)
        made.append(random.to(dtype))
    return made
