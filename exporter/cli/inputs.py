"""Example inputs from the command line, such as `--input x=f32[batch,3,224,224]`."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from onnxplain.diagnostics import Location

from .nearest import hint

if TYPE_CHECKING:
    import torch

    from .target import Target

FORM = "NAME=DTYPE[SIZE,...], such as x=f32[batch,3,224,224] or ids=i64[batch=4,length]"
"""What `--input` expects."""

_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
}
_INPUT = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*=\s*(?P<dtype>\w+)\s*\[(?P<dims>[^\[\]]*)\]\s*")
_DIM = re.compile(r"\s*(?:(?P<static>\d+)|(?P<name>[^\W\d]\w*)\s*(?:=\s*(?P<size>\d+))?)\s*")
ALL, NONE = "all", "none"
"""Words for `--dynamic` instead of names of dims."""


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dim of an input: its size, its name, or both."""

    name: str
    size: int | None

    def __str__(self) -> str:
        return "=".join(str(part) for part in (self.name, self.size) if part not in ("", None))


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of the model as the command line describes it."""

    name: str
    dtype: str
    dims: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.name}={self.dtype}[{','.join(map(str, self.dims))}]"


def parse(text: str) -> Input:
    """Reads an input.

    Raises:
        ValueError: The text has another form.
    """
    found = _INPUT.fullmatch(text)
    parts = found["dims"].split(",") if found and found["dims"].strip() else []
    dims = [_DIM.fullmatch(part) for part in parts]
    if found is None or None in dims:
        raise ValueError(f"expected {FORM}, got {text!r}.")
    if found["dtype"] not in _DTYPES:
        near = hint(found["dtype"], [*_DTYPES])
        raise ValueError(f"expected {FORM}, with one of the dtypes {', '.join(_DTYPES)}, got {found['dtype']!r}.{near}")
    return Input(found["name"], _DTYPES[found["dtype"]], tuple(map(_dim, filter(None, dims))))


def _dim(found: re.Match[str]) -> Dim:
    size = found["static"] or found["size"]
    return Dim(found["name"] or "", None if size is None else int(size))


def inputs(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[Input, ...]:
    """The inputs of `--input`, in order."""
    try:
        parsed = tuple(map(parse, values))
        _sizes(parsed)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    names = [each.name for each in parsed]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.BadParameter(f"the input {twice!r} is there twice.", ctx, param)
    return parsed


def names(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Names that commas separate."""
    return tuple(name.strip() for value in values for name in value.split(","))


def verify_sizes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> int | tuple[Mapping[str, int], ...]:
    """What `--verify-sizes` asks for, as `export` takes it: a number, or sizes by the names of dims."""
    if len(values) == 1 and values[0].strip().isdecimal():
        return int(values[0])
    parsed = [[_DIM.fullmatch(part) for part in value.split(",")] for value in values]
    named = [{found["name"]: int(found["size"]) for found in each if found and found["size"]} for each in parsed]
    if any(len(sizes) != len(parts) for sizes, parts in zip(named, parsed, strict=True)):
        raise click.BadParameter(f"expected a number, or NAME=SIZE[,NAME=SIZE] with a name once, got {' '.join(values)!r}.", ctx, param)
    return tuple(named)


def _sizes(parsed: Sequence[Input]) -> Mapping[str, int]:
    """The example size of each named dim. Those without a size get small ones that no other dim has, since torch.export fixes 0 and 1.

    Raises:
        ValueError: A dim has two sizes.
    """
    sizes: dict[str, int] = {}
    dims = [dim for each in parsed for dim in each.dims]
    for dim in dims:
        if dim.name and dim.size is not None and sizes.setdefault(dim.name, dim.size) != dim.size:
            raise ValueError(f"the dim {dim.name!r} has two sizes, {sizes[dim.name]} and {dim.size}.")
    used = {dim.size for dim in dims}
    free = (size for size in itertools.count(2) if size not in used)
    for dim in dims:
        if dim.name and dim.name not in sizes:
            sizes[dim.name] = next(free)
    return sizes


def with_inputs(target: Target, parsed: Sequence[Input], dynamic: Sequence[str]) -> Target:
    """`target` with the inputs of the command line instead of those it brings, and with the dims of `--dynamic`.

    Raises:
        click.UsageError: The model takes other inputs, or no dim has such a name.
    """
    if not parsed and not dynamic:
        return target
    # NOTE: what the target itself returns is not what is exported, so no edit may change it.
    target = dataclasses.replace(target, definition=None if target.definition is None else Location(target.definition.file))
    if not parsed:
        if dynamic in ((ALL,), (NONE,)):
            return dataclasses.replace(target, dynamic_shapes=True if dynamic == (ALL,) else None)
        raise click.UsageError(
            f"--dynamic: expected {ALL!r} or {NONE!r}, got {','.join(dynamic)!r}. Names of dims are for the dims of --input {FORM}."
        )
    sizes = _sizes(parsed)
    chosen = [*sizes] if not dynamic else [] if dynamic == (NONE,) else [*dynamic]
    if dynamic != (ALL,) and (unknown := [name for name in chosen if name not in sizes]):
        known = f"The names in --input are {', '.join(sizes)}." if sizes else "No dim in --input has a name."
        raise click.UsageError(f"--dynamic: there is no dim {unknown[0]!r}.{hint(unknown[0], sizes)} {known}")
    bound = _bound(target.model, _examples(parsed, sizes, target.model))
    shapes = {each.name: {axis: dim.name for axis, dim in enumerate(each.dims) if dim.name in chosen} for each in parsed}
    return dataclasses.replace(
        target,
        args=bound.args,
        kwargs=bound.kwargs,
        dynamic_shapes=True if dynamic == (ALL,) else shapes if any(shapes.values()) else None,
    )


def _bound(model: Any, values: Mapping[str, Any]) -> inspect.BoundArguments:
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        raise click.UsageError("--input: an ExportedProgram has its inputs already.")
    function: Callable[..., Any] = model.forward if isinstance(model, torch.nn.Module) else model
    signature = inspect.signature(function)
    try:
        return signature.bind(**values)
    except TypeError as error:
        parameters = [*signature.parameters]
        near = next((told for name in values if name not in parameters and (told := hint(name, parameters))), "")
        raise click.UsageError(f"--input: expected inputs for ({', '.join(parameters)}): {error}.{near}") from error


def _examples(parsed: Sequence[Input], sizes: Mapping[str, int], model: Any) -> dict[str, torch.Tensor]:
    """Normally distributed floats; zeros and ones for integers and bools, since most tables have these indices. The same in each run."""
    import torch

    weight = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
    device = torch.device("cpu") if weight is None else weight.device
    generator = torch.Generator().manual_seed(0)
    examples = {}
    for each in parsed:
        shape = [sizes[dim.name] if dim.size is None else dim.size for dim in each.dims]
        dtype: torch.dtype = getattr(torch, each.dtype)
        value = torch.randn(shape, generator=generator) if dtype.is_floating_point else torch.randint(0, 2, shape, generator=generator)
        examples[each.name] = value.to(device, dtype)
    return examples
