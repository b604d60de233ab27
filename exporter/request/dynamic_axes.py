"""`dynamic_axes`, which older exporters had in place of `dynamic_shapes`."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeGuard

import torch
from torch.export import Dim

from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.python_values import is_a

from .inputs import bound


@dataclasses.dataclass(frozen=True)
class WrongEntry:
    """An entry of `dynamic_axes` under a name that no input has, or whose axes have no known form.

    Attributes:
        key: Its key.
        expected: What would fit.
        actual: What is there.
        is_name: Whether its key is wrong, and not its axes.
        right: The key or the axes that fit; None if there are none.
        certain: Whether `right` is what the user means; or, without an input that the entry may be about, whether it says nothing.
    """

    key: Any
    expected: str
    actual: str
    is_name: bool
    right: Any
    certain: bool


@dataclasses.dataclass(frozen=True)
class MisfitAxes:
    """`dynamic_axes` that do not fit the inputs.

    Attributes:
        given: The user's argument.
        wrong: The entries that do not fit.
    """

    given: Mapping[Any, Any]
    wrong: tuple[WrongEntry, ...]

    def fitting(self) -> dict[Any, Any]:
        """The argument with what fits in place of what does not."""
        names = {each.key: each.right for each in self.wrong if each.is_name}
        axes = {each.key: each.right for each in self.wrong if not each.is_name}
        entries = {key: axes[key] if axes.get(key) is not None else value for key, value in self.given.items()}
        return {names.get(key, key): value for key, value in entries.items() if names.get(key, key) is not None}


def as_shapes(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]],
) -> dict[str, Any] | None:
    """`dynamic_axes` as `dynamic_shapes`, without the entries that do not fit; None if the inputs do not fit the model.

    Args:
        model: The model.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        input_names: Names of the graph's inputs in order; missing ones are named after the parameters.
        dynamic_axes: Input name to `{axis: name}` or `[axis]`.
    """
    inputs = bound(model, args, kwargs)
    names = list(input_names)
    shapes = {}
    for parameter, value in inputs.items():
        leaves, structure = pytree.tree_flatten(value)
        specs = [_axes(dynamic_axes.get(names.pop(0) if names else parameter)) for _ in leaves]
        shapes[parameter] = pytree.tree_unflatten(specs, structure)
    return shapes or None


def misfit(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
    output_names: Sequence[str],
    dynamic_axes: Mapping[Any, Any],
) -> MisfitAxes | None:
    """What of `dynamic_axes` does not fit the inputs; None if everything fits.

    Args:
        model: The model.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        input_names: Names of the graph's inputs in order; missing ones are named after the parameters.
        output_names: Names of the graph's outputs; their dims follow from the inputs'.
        dynamic_axes: Input name to `{axis: name}` or `[axis]`.
    """
    inputs = bound(model, args, kwargs)
    names = list(_wrong_names(inputs, input_names, output_names, dynamic_axes)) if inputs else []
    nothing = {each.key for each in names if each.right is None}
    wrong = (*names, *(each for key, axes in dynamic_axes.items() if key not in nothing for each in _wrong_axes(key, axes)))
    return MisfitAxes(dynamic_axes, wrong) if wrong else None


def _wrong_names(
    inputs: Mapping[str, Any], input_names: Sequence[str], output_names: Sequence[str], dynamic_axes: Mapping[Any, Any]
) -> Iterator[WrongEntry]:
    left = list(input_names)
    tensors: dict[str, str] = {}
    for parameter, value in inputs.items():
        for leaf in pytree.tree_leaves(value):
            name = left.pop(0) if left else parameter
            tensors |= {name: parameter} if is_a(leaf, torch.Tensor) else {}
    known = {*tensors, *input_names, *output_names, *(inputs.keys() - tensors.values())}
    unknown = [key for key in dynamic_axes if key not in known]
    free = [name for name in tensors if name not in dynamic_axes]
    expected = f"the name of an input ({', '.join(tensors)})"
    for key in unknown:
        near = [name for name in free if tensors[name] == key] or difflib.get_close_matches(str(key), free, 1)
        # NOTE: users also name the dims of outputs, which follow from the inputs'.
        is_output = not near and str(key).startswith("out")
        right = None if is_output else next(iter((*near, *free)), None)
        yield WrongEntry(key, expected, str(key), is_name=True, right=right, certain=bool(near) or len(free) <= 1 or is_output)
        free = [name for name in free if name != right]


def _wrong_axes(key: object, axes: object) -> Iterator[WrongEntry]:
    if axes is None or (isinstance(axes, Mapping | list | tuple) and all(map(_is_axis, axes))):
        return
    right: Any = None
    match axes:
        case Mapping():
            right = {_number(axis): name for axis, name in axes.items()}
        case str():
            right = {0: axes}
        case int() if _is_axis(axes):
            right = [axes]
        case list() | tuple() | Set() | range():
            right = list(map(_number, sorted(axes, key=str) if isinstance(axes, Set) else axes))
    right = None if right is None or None in right else right
    expected = f"{{axis: name}} or [axis, ...] for {key!r}"
    yield WrongEntry(key, expected, repr(axes), is_name=False, right=right, certain=not isinstance(axes, str))


def _is_axis(axis: object) -> TypeGuard[int]:
    return isinstance(axis, int) and not isinstance(axis, bool)


def _number(axis: object) -> int | None:
    """An axis as a number, also if it is written as text."""
    try:
        return int(axis) if isinstance(axis, str) or _is_axis(axis) else None
    except ValueError:
        return None


def _axes(axes: Mapping[int, str] | Sequence[int] | None) -> dict[int, Any] | None:
    if isinstance(axes, Mapping):
        return dict(axes)
    return dict.fromkeys(axes, Dim.DYNAMIC) if isinstance(axes, list | tuple) else None
