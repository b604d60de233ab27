"""`dynamic_axes`, which older exporters had in place of `dynamic_shapes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.export import Dim

from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals import pytree

from .inputs import bound


def as_shapes(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]],
) -> dict[str, Any] | None:
    """`dynamic_axes` as `dynamic_shapes`; None if the inputs do not fit the model, which the capture then reports.

    Args:
        model: The model.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        input_names: Names of the graph's inputs in order; missing ones are named after the parameters.
        output_names: Names of the graph's outputs; their dims follow from the inputs'.
        dynamic_axes: Input name to `{axis: name}` or `[axis]`.

    Raises:
        InvalidArgument: No input has that name, or its axes have neither of these two forms.
    """
    inputs = bound(model, args, kwargs)
    for name, axes in dynamic_axes.items():
        _check(name, axes)
    if not inputs:
        return None
    known = {*input_names, *output_names, *inputs}
    unknown = [name for name in dynamic_axes if name not in known]
    if unknown:
        raise InvalidArgument(f"dynamic_axes: expected names of inputs ({', '.join([*input_names, *inputs])}), got {unknown[0]!r}")
    names = list(input_names)
    shapes = {}
    for parameter, value in inputs.items():
        leaves, structure = pytree.tree_flatten(value)
        specs = [_axes(dynamic_axes.get(names.pop(0) if names else parameter)) for _ in leaves]
        shapes[parameter] = pytree.tree_unflatten(specs, structure)
    return shapes


def _check(name: str, axes: object) -> None:
    fits = isinstance(axes, Mapping | list | tuple) and all(isinstance(axis, int) for axis in axes)
    if axes is not None and not fits:
        raise InvalidArgument(f"dynamic_axes[{name!r}]: expected {{axis: name}} or [axis, ...], got {axes!r}")


def _axes(axes: Mapping[int, str] | Sequence[int] | None) -> dict[int, Any] | None:
    if axes is None or isinstance(axes, Mapping):
        return None if axes is None else dict(axes)
    return dict.fromkeys(axes, Dim.DYNAMIC)
