"""The example inputs: by parameter of `forward`, and as the leaves that torch.export flattens them to."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxplain.torch_internals import pytree

Path = tuple[Any, ...]
"""The path to a part of the inputs: the parameter's name, then torch's keys."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An input without parts.

    Attributes:
        way: The path to it.
        positions: For each key of the path, the position among its siblings; none for the parameter.
        value: The example value.
    """

    way: Path
    positions: tuple[int, ...]
    value: Any

    @property
    def path(self) -> str:
        """The expression for it in `forward`, such as `batch['tokens']`."""
        parameter, *keys = self.way
        return f"{parameter}{pytree.keystr(tuple(keys))}"


def bound(model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs by parameter of `forward`; empty if they do not fit its signature."""
    try:
        signature = inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
        return dict(signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError, AttributeError):
        # NOTE: a scripted module may have no forward.
        return {}


def in_torch_order(inputs: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The parameters in the order in which torch.export flattens them: those of `args`, then `kwargs` in the order of the call."""
    by_keyword = list(kwargs)
    return sorted(inputs, key=lambda each: by_keyword.index(each) if each in by_keyword else -1)


def leaves(parameter: str, value: Any) -> Iterator[Leaf]:
    """Every leaf of an input."""
    return _leaves((parameter,), (), value)


def _leaves(way: Path, positions: tuple[int, ...], value: Any) -> Iterator[Leaf]:
    parts = children(value)
    if not parts and not is_empty(value):
        yield Leaf(way, positions, value)
    for position, (key, child) in enumerate(parts):
        yield from _leaves((*way, key), (*positions, position), child)


def children(value: Any) -> list[tuple[Any, Any]]:
    """The parts of a container, each with torch's key for it; empty for a leaf."""
    try:
        parts, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda each: each is not value)
        return [(path[0], child) for path, child in parts if path]
    except ValueError:
        # NOTE: a user may register a class without names for its parts.
        flat, _ = pytree.tree_flatten(value, is_leaf=lambda each: each is not value)
        return [(pytree.SequenceKey(number), child) for number, child in enumerate(flat)]


def is_empty(value: Any) -> bool:
    """Whether `value` is an empty container."""
    return not pytree.tree_leaves(value)


def key_of(entry: Any) -> Any:
    """The key, index or attribute name in one of torch's keys."""
    return next((getattr(entry, name) for name in ("key", "idx", "name") if hasattr(entry, name)), None)


def is_supported(value: Any) -> bool:
    """Whether torch.export takes `value` as a leaf: a tensor, a Python constant, or an object of torch."""
    return (
        value is None
        or isinstance(value, torch.Tensor | torch.nn.Module | bool | int | float | complex | str)
        or type(value).__module__.partition(".")[0] == "torch"
    )


def distinct(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs with a separate tensor for each: torch.export makes one input of a tensor that is passed twice (seen in 2.13)."""
    seen: set[int] = set()

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        known = id(tensor) in seen
        seen.add(id(tensor))
        return tensor.clone() if known else tensor

    given: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_map_only(torch.Tensor, separate, (tuple(args), dict(kwargs)))
    return given
