"""The two ways to say which dims are dynamic, as torch.export wants them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.export import Dim

from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals import pytree


def for_torch(spec: Any) -> Any:
    """`spec` with names (strings) as dims that torch has to keep dynamic; all else as it is."""
    if isinstance(spec, str):
        return Dim.DYNAMIC
    if isinstance(spec, Mapping):
        return {key: for_torch(each) for key, each in spec.items()}
    if isinstance(spec, list | tuple) and not hasattr(spec, "_fields"):
        return type(spec)(for_torch(each) for each in spec)
    return spec


def named(model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """A name for every dim of every tensor among the inputs, such as `x_dim_0`; None if they do not fit the model.

    Args:
        model: What is exported.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
    """

    def dims(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return None
        tensor = re.sub(r"\W+", "_", pytree.keystr(path)).strip("_")
        # NOTE: as Dim objects, because of two that turn out to be one nobody need be told: nobody asked for two.
        return {axis: Dim(f"{tensor}_dim_{axis}") for axis in range(leaf.dim())}

    try:
        bound = inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    return cast("dict[str, Any]", pytree.tree_map_with_path(dims, dict(bound.arguments)))


def from_dynamic_axes(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]],
) -> dict[str, Any]:
    """The old argument `dynamic_axes` as `dynamic_shapes`.

    Args:
        model: What is exported.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        input_names: Names of the graph's inputs in order; parameter names stand for those that are missing.
        output_names: Names of the graph's outputs; their dims follow from the inputs'.
        dynamic_axes: Input name to `{axis: name}` or `[axis]`.

    Raises:
        InvalidArgument: There is no input of a name, or its axes are neither of the two.
    """
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    bound = inspect.signature(forward).bind(*args, **kwargs).arguments
    known = {*input_names, *output_names, *bound}
    unknown = [name for name in dynamic_axes if name not in known]
    if unknown:
        raise InvalidArgument(f"dynamic_axes: expected names of inputs ({', '.join([*input_names, *bound])}), got {unknown[0]!r}")
    names = list(input_names)
    shapes = {}
    for parameter, value in bound.items():
        leaves, structure = pytree.tree_flatten(value)
        specs = [_axes(dynamic_axes, names.pop(0) if names else parameter) for _ in leaves]
        shapes[parameter] = pytree.tree_unflatten(specs, structure)
    return shapes


def _axes(dynamic_axes: Mapping[str, Any], name: str) -> dict[int, Any] | None:
    axes = dynamic_axes.get(name)
    if axes is None:
        return None
    if isinstance(axes, Mapping):
        return dict(axes)
    if isinstance(axes, list | tuple):
        return dict.fromkeys(axes, Dim.DYNAMIC)
    raise InvalidArgument(f"dynamic_axes[{name!r}]: expected {{axis: name}} or [axis, ...], got {axes!r}")
