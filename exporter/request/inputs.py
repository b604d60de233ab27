"""The example inputs: by parameter of `forward`, and as the leaves that torch.export flattens them to."""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxplain.torch_internals import keyword_inputs, pytree
from onnxplain.torch_internals.opaque_objects import is_opaque
from onnxplain.torch_internals.python_values import is_a

from .binding import signature_of

_BUILTIN = (dict, OrderedDict, defaultdict, list, tuple, deque)
"""The classes of containers that torch's trees know from the start, beside named tuples."""

Path = tuple[Any, ...]
"""The path to a part of the inputs: the parameter's name, then torch's keys."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An input without parts.

    Attributes:
        way: The path to it.
        positions: For each key of the path, the position among its siblings; none for the parameter.
        value: The example value.
        variadic: The parameter such as `**kwargs` that takes it; empty if another parameter does.
    """

    way: Path
    positions: tuple[int, ...]
    value: Any
    variadic: str = ""

    @property
    def path(self) -> str:
        """The expression for it in `forward`, such as `batch['tokens']`."""
        parameter, *keys = self.way
        begin = f"{self.variadic}[{parameter!r}]" if self.variadic else parameter
        return f"{begin}{pytree.keystr(tuple(keys))}"


def bound(model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs by parameter of `forward`, those that `**kwargs` takes by their names; empty if they do not fit its signature."""
    if (signature := signature_of(model)) is None:
        return {}
    try:
        return keyword_inputs.beside(dict(signature.bind(*args, **kwargs).arguments), signature)
    except TypeError:
        return {}


def with_keywords(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """`args` and `kwargs`, with a dict at the end of `args` as keyword inputs, as torch.onnx takes it: `(x, {"mask": mask})`.

    A dict whose keys are no parameters of `forward`, or without which the inputs do not fit, stays an input.
    """
    signature = None if kwargs or not args or type(args[-1]) is not dict else signature_of(model)
    if signature is None:
        return tuple(args), kwargs
    *before, last = args
    takes_names = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = {name for name, parameter in signature.parameters.items() if parameter.kind in takes_names}
    try:
        signature.bind(*before, **{str(name): value for name, value in last.items()})
    except TypeError:
        return tuple(args), kwargs
    return (tuple(before), last) if last.keys() <= named else (tuple(args), kwargs)


def in_torch_order(inputs: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The parameters in the order in which torch.export flattens them: those of `args`, then `kwargs` in the order of the call."""
    by_keyword = list(kwargs)
    return sorted(inputs, key=lambda each: by_keyword.index(each) if each in by_keyword else -1)


def leaves(parameter: str, value: Any, variadic: str = "") -> Iterator[Leaf]:
    """Every leaf of an input. `variadic` as for `Leaf`."""
    return _leaves(Leaf((parameter,), (), value, variadic))


def _leaves(whole: Leaf) -> Iterator[Leaf]:
    parts = children(whole.value)
    if not parts and not is_empty(whole.value):
        yield whole
    for position, (key, child) in enumerate(parts):
        yield from _leaves(Leaf((*whole.way, key), (*whole.positions, position), child, whole.variadic))


def children(value: Any) -> list[tuple[Any, Any]]:
    """The parts of a container, each with torch's key for it; empty for a leaf."""
    try:
        parts, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda each: each is not value)
        return [(path[0], child) for path, child in parts if path]
    except ValueError:
        # NOTE: a user may register a class without names for its parts.
        flat, _ = pytree.tree_flatten(value, is_leaf=lambda each: each is not value)
        return [(pytree.SequenceKey(number), child) for number, child in enumerate(flat)]


def mapped(value: Any, entries: Mapping[Path, Any], way: Path) -> Any:
    """`value` with entries in place of its leaves, in the form that torch.export expects of `dynamic_shapes`.

    A list stands for an object of a registered class, which may not be able to hold entries.

    Args:
        value: The input, or a part of it.
        entries: The entries by the path of the leaf; a missing one is None.
        way: The path to `value`.
    """
    parts = children(value)
    if not parts:
        return [] if is_registered(value) else value if is_empty(value) else entries.get(way)
    mirrored = [mapped(child, entries, (*way, key)) for key, child in parts]
    if hasattr(value, "_fields"):
        return type(value)(*mirrored)
    if type(value) in (dict, OrderedDict, defaultdict):
        return {key_of(key): each for (key, _), each in zip(parts, mirrored, strict=True)}
    return type(value)(mirrored) if type(value) in (tuple, deque) else mirrored


def is_registered(value: Any) -> bool:
    """Whether `value` is a container of a class that somebody registered; torch knows the others by itself."""
    return not pytree.tree_is_leaf(value) and type(value) not in _BUILTIN and not hasattr(value, "_fields")


def is_empty(value: Any) -> bool:
    """Whether `value` is an empty container."""
    return not pytree.tree_leaves(value)


def key_of(entry: Any) -> Any:
    """The key, index or attribute name in one of torch's keys."""
    return next((getattr(entry, name) for name in ("key", "idx", "name") if hasattr(entry, name)), None)


def is_supported(value: Any) -> bool:
    """Whether `value` can be a leaf: a tensor, or a constant that torch.export takes."""
    if is_a(value, torch.Tensor):
        return is_dense(value)
    return value is None or is_a(value, bool, int, float, str) or (is_a(value, enum.Enum) and is_opaque(value))


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements of `tensor` are in memory one by one, as those of an ONNX tensor: it is not nested, quantized or sparse."""
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)


def distinct(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs with a separate tensor for each: torch.export makes one input of a tensor that is passed twice (seen in 2.13)."""
    seen: set[int] = set()

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        known = id(tensor) in seen
        seen.add(id(tensor))
        return tensor.clone() if known else tensor

    given: tuple[tuple[Any, ...], dict[str, Any]] = pytree.map_tensors(separate, (tuple(args), dict(kwargs)))
    return given


def copied(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs in new containers, with a copy of each tensor: a model may write to all of them.

    A tensor that is passed twice stays one tensor. The containers are rebuilt as torch.export rebuilds them.
    """
    tensors = (leaf for leaf in pytree.tree_leaves((tuple(args), dict(kwargs))) if is_a(leaf, torch.Tensor))
    # NOTE: `deepcopy` refuses a tensor that a computation with gradients returned.
    known: dict[int, Any] = {id(tensor): tensor.clone() for tensor in tensors if not tensor.is_leaf}
    given: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_map(lambda leaf: copy.deepcopy(leaf, known), (tuple(args), dict(kwargs)))
    return given
