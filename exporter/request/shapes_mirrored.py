"""The forms of `dynamic_shapes` that mirror the inputs loosely, brought to the one form that mirrors them exactly."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim

from onnxplain.torch_internals.python_values import is_a

from . import inputs
from .inputs import Leaf, Path


def part(spec: Any, key: Any, position: int) -> Any:
    """The entry for a part in a dict, sequence or registered class; None if there is none."""
    if isinstance(spec, Mapping):
        return spec.get(key)
    parts = spec if isinstance(spec, list | tuple) else [child for _, child in inputs.children(spec)]
    return parts[position] if position < len(parts) else None


def one_for_each(given: Any, by_parameter: Mapping[str, Any], signature: inspect.Signature | None) -> Any:
    """`given` with the entries for what `*args` takes in one entry, if it has one entry for each positional input."""
    kinds = {} if signature is None else {name: each.kind for name, each in signature.parameters.items()}
    variadic = next((name for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL), None)
    if variadic is None or variadic not in by_parameter or not _is_list(given):
        return given
    before, own = list(by_parameter).index(variadic), by_parameter[variadic]
    after = before + len(own)
    # NOTE: torch's form has one entry for `*args` as a whole.
    is_nested = len(given) == len(by_parameter) and _fits(own, given[before])
    if is_nested or len(given) != len(by_parameter) - 1 + len(own):
        return given
    return (*given[:before], tuple(given[before:after]), *given[after:])


def mirrored(given: Any, by_parameter: Mapping[str, Any], variadic: str) -> Any:
    """`given` with one entry for each input and, within objects of registered classes, for each part.

    The entries for inputs that hold no tensors may be missing, those for `**kwargs` may be in a dict with that name, and those for an
    object may have any form that `_of_object` knows. The dims by axis of one tensor may stand for a list of tensors. What fits none of
    these forms stays as it is.

    Args:
        given: The user's `dynamic_shapes`.
        by_parameter: The inputs by parameter of `forward`, those of `**kwargs` by their names.
        variadic: The name of the parameter `**kwargs`; empty if `forward` has none.
    """
    if _is_list(given) and len(given) == len(by_parameter):
        entries = list(map(_mirrored, by_parameter.values(), given))
        return given if all(map(operator.is_, entries, given)) else dict(zip(by_parameter, entries, strict=True))
    if not isinstance(given, Mapping) or not given:
        return given
    spec = {name: None for name, value in by_parameter.items() if not _holds_tensors(value)} | dict(given)
    if variadic in spec and variadic not in by_parameter and isinstance(spec[variadic], Mapping | None):
        spec |= spec.pop(variadic) or {}
    spec = {name: _mirrored(by_parameter[name], each) if name in by_parameter else each for name, each in spec.items()}
    return given if spec.keys() == given.keys() and all(spec[name] is given[name] for name in spec) else spec


def _mirrored(value: Any, spec: Any) -> Any:
    """The entry `spec` for an input as one entry for each part; `spec` itself if it is that already, or fits no known form."""
    if is_a(value, torch.Tensor) or spec is None:
        return _counted_from_zero(value, spec)
    if inputs.is_registered(value):
        return _of_object(value, spec)
    parts = [(inputs.key_of(key), child) for key, child in inputs.children(value)]
    if type(value) in (list, tuple) and _are_axes(spec) and all(is_a(child, torch.Tensor) for _, child in parts):
        return type(value)(_counted_from_zero(child, spec) for _, child in parts)
    if not parts or not _matches(parts, spec):
        return spec
    if isinstance(spec, Mapping):
        entries = {key: _mirrored(child, spec[key]) for key, child in parts}
        return spec if all(entries[key] is spec[key] for key in spec) else entries
    listed = [_mirrored(child, each) for (_, child), each in zip(parts, spec, strict=True)]
    # NOTE: torch wants a list for a list and a tuple for a tuple.
    kind = type(value) if {type(value), type(spec)} == {list, tuple} else type(spec)
    if kind is type(spec) and all(map(operator.is_, listed, spec)):
        return spec
    return kind(*listed) if hasattr(spec, "_fields") else kind(listed)


def _are_axes(spec: Any) -> bool:
    """Whether a dict has dims by axis. By part, it has dicts, sequences or None."""
    numbers = isinstance(spec, Mapping) and bool(spec) and all(isinstance(key, int) for key in spec)
    return numbers and not any(each is None or isinstance(each, Mapping | list | tuple) for each in spec.values())


def _counted_from_zero(value: Any, spec: Any) -> Any:
    """The entry for a tensor with axes that count from its start; `spec` itself if they do, or if it names no axes.

    NOTE: torch drops `Dim.DYNAMIC` and `Dim.AUTO` of a negative axis without a word (torch 2.13, export/dynamic_shapes.py).
    """
    if not isinstance(spec, Mapping) or not is_a(value, torch.Tensor):
        return spec
    axes = {axis: axis + value.dim() for axis in spec if isinstance(axis, int) and -value.dim() <= axis < 0}
    if spec.keys() & axes.values():
        return spec  # An axis that is named twice is the user's mistake.
    return {axes.get(axis, axis): dim for axis, dim in spec.items()} if axes else spec


def _of_object(value: Any, spec: Any) -> Any:
    """The entries for the parts of an object of a registered class, in a list.

    The forms are: an object of the same class; a dict of entries by attribute; a list of entries by part; True, or the dims by axis, for
    all of its tensors; a flat list of entries by tensor; and for a cache the older forms, `[keys, values]` and `[(key, value), ...]`.
    """
    parts = [(inputs.key_of(key), child) for key, child in inputs.children(value)]
    if type(spec) is type(value):
        spec = [child for _, child in inputs.children(spec)]
    elif isinstance(spec, Mapping) and spec and set(spec) <= {key for key, _ in parts}:
        spec = [spec.get(key) for key, _ in parts]
    if _is_list(spec) and len(spec) == len(parts) and all(_fits(child, each) for (_, child), each in zip(parts, spec, strict=True)):
        return [_mirrored(child, each) for (_, child), each in zip(parts, spec, strict=True)]
    leaves = [leaf for leaf in inputs.leaves("", value) if is_a(leaf.value, torch.Tensor)]
    if (entries := _by_tensor(leaves, spec)) is not None:
        by_path = {leaf.way: _counted_from_zero(leaf.value, entry) for leaf, entry in zip(leaves, entries, strict=True)}
        return inputs.mapped(value, by_path, ("",))
    # NOTE: the object may wrap one container, whose structure the entries have.
    return [_mirrored(parts[0][1], spec)] if len(parts) == 1 and _fits(parts[0][1], spec) else spec


def _by_tensor(leaves: Sequence[Leaf], spec: Any) -> list[Any] | None:
    """An entry for each tensor of an object; None if `spec` has none of the forms by tensor."""
    if spec is True:
        return [dict.fromkeys(range(leaf.value.dim()), Dim.AUTO) for leaf in leaves]
    if isinstance(spec, Mapping) and spec and all(isinstance(axis, int) for axis in spec):
        # NOTE: counted from the start and from the end, two axes may be one for some of the tensors. The later entry counts.
        ranks = [leaf.value.dim() for leaf in leaves]
        return [{axis % rank: dim for axis, dim in spec.items() if -rank <= axis < rank} for rank in ranks]
    listed = list(spec.values()) if isinstance(spec, Mapping) else spec
    # NOTE: a static cache also holds its length, which has no dims.
    with_dims = [leaf for leaf in leaves if leaf.value.dim()]
    flat = _listed(with_dims, listed) if _is_list(listed) else None
    return None if flat is None else [flat.get(leaf.way) for leaf in leaves]


def _listed(leaves: Sequence[Leaf], spec: Sequence[Any]) -> dict[Path, Any] | None:
    """The entries of a list by the path of their tensor: in the order of the tensors, in two lists of keys and values, or in pairs."""
    if len(spec) == len(leaves) and all(map(_is_entry, spec)):
        return {leaf.way: each for leaf, each in zip(leaves, spec, strict=True)}
    keys, values = ([leaf.way for leaf in leaves if inputs.key_of(leaf.way[-1]) == name] for name in ("keys", "values"))
    columns = spec if len(spec) == 2 else list(zip(*filter(_is_list, spec), strict=False))
    if len(keys) + len(values) != len(leaves) or len(columns) != 2:
        return None
    if not all(_is_list(column) and len(column) == len(keys) == len(values) and all(map(_is_entry, column)) for column in columns):
        return None
    return dict(zip([*keys, *values], [*columns[0], *columns[1]], strict=True))


def _is_list(spec: Any) -> bool:
    return isinstance(spec, list | tuple)


def _is_entry(spec: Any) -> bool:
    """Whether `spec` can stand for one tensor."""
    if not isinstance(spec, Mapping | list | tuple | None):
        return False
    dims = spec.values() if isinstance(spec, Mapping) else spec or ()
    return not any(isinstance(dim, Mapping | list | tuple) for dim in dims)


def _matches(parts: Sequence[tuple[Any, Any]], spec: Any) -> bool:
    """Whether `spec` has as many entries as a container has parts, and the same keys if it is a dict."""
    return set(spec) == {key for key, _ in parts} if isinstance(spec, Mapping) else _is_list(spec) and len(spec) == len(parts)


def _fits(value: Any, spec: Any) -> bool:
    """Whether `spec` has a known form for `value`."""
    if spec is None:
        return True
    if is_a(value, torch.Tensor):
        return _is_entry(spec) and (isinstance(spec, Mapping) or len(spec) == value.dim())
    if inputs.is_registered(value):
        return _of_object(value, spec) is not spec
    parts = [(inputs.key_of(key), child) for key, child in inputs.children(value)]
    return _matches(parts, spec) and all(_fits(child, part(spec, key, position)) for position, (key, child) in enumerate(parts))


def _holds_tensors(value: Any) -> bool:
    return any(is_a(leaf.value, torch.Tensor) for leaf in inputs.leaves("", value))
