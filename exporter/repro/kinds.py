"""Composite values as expressions: a table of kinds, each with the function that writes it."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import os
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from onnxplain.torch_internals.python_values import is_a

from .expression import Expression, Items, Quoted, Ref, Text, Unknown, call, literal
from .live_objects import kind_of

_Write = Callable[[Any, str], Expression]
"""Writes a part of a value; the text says where the part is."""


def composite(value: Any, place: str, write: _Write) -> Expression | None:
    """An expression for a container or another value that consists of parts; None if its kind is not in the table.

    Args:
        value: The value.
        place: Where it is, for `Unknown`.
        write: Writes the parts.

    Raises:
        Unknown: There is no expression for a part.
    """
    for is_of_kind, expression in _KINDS:
        if is_of_kind(value):
            return expression(value, place, write)
    return None


def _instance_of(*types: type) -> Callable[[Any], bool]:
    return lambda value: is_a(value, *types)


def _is_sequence(value: Any) -> bool:
    return type(value) in (list, tuple, set, frozenset, torch.Size)


def _sequence(value: Any, place: str, write: _Write) -> Expression:
    items = tuple(("", write(item, f"{place}[{number}]")) for number, item in enumerate(value))
    if type(value) in (tuple, torch.Size):
        return Items(None, ("(", ")"), items)
    shown = Items(None, ("[", "]"), items)
    return shown if type(value) is list else call(Text(type(value).__name__), shown)


def _is_named_tuple(value: Any) -> bool:
    return is_a(value, tuple) and hasattr(value, "_fields")


def _named_tuple(value: Any, place: str, write: _Write) -> Expression:
    return call(Ref(type(value)), *(write(item, f"{place}.{name}") for name, item in zip(value._fields, value, strict=True)))


def _is_mapping(value: Any) -> bool:
    return is_a(value, dict) and not dataclasses.is_dataclass(value)


def _mapping(value: Any, place: str, write: _Write) -> Expression:
    items = tuple((f"{_key(key, write)}: ", write(item, f"{place}[{key!r}]")) for key, item in value.items())
    shown = Items(None, ("{", "}"), items)
    if type(value) is dict:
        return shown
    if is_a(value, collections.defaultdict):
        return call(Ref(type(value)), write(value.default_factory, place), shown)
    return call(Ref(type(value)), shown)


def _key(key: Any, write: _Write) -> str:
    expression = write(key, "a key")
    if isinstance(expression, Quoted):
        # NOTE: code finds values by these names.
        return literal(expression.value).text
    if not isinstance(expression, Text):
        raise Unknown("a key", kind_of(key))
    return expression.text


def _enum_member(value: enum.Enum, _place: str, _write: _Write) -> Expression:
    return Items(Ref(type(value)), ("[", "]"), (("", literal(value.name)),))


def _partial(value: functools.partial[Any], place: str, write: _Write) -> Expression:
    given = [write(each, place) for each in (value.func, *value.args)]
    return call(Text("functools.partial"), *given, keywords={name: write(each, place) for name, each in value.keywords.items()})


def _method(value: types.MethodType, place: str, write: _Write) -> Expression:
    owner = write(value.__self__, place)
    if isinstance(owner, Ref):
        return dataclasses.replace(owner, after=f"{owner.after}.{value.__func__.__name__}")
    return call(Text("types.MethodType"), write(value.__func__, place), owner)


def _slice(value: slice, place: str, write: _Write) -> Expression:
    return call(Text("slice"), *(write(each, place) for each in (value.start, value.stop, value.step)))


def _range(value: range, _place: str, _write: _Write) -> Expression:
    return literal(value)


def _path(value: pathlib.PurePath, place: str, write: _Write) -> Expression:
    # NOTE: folders tell of the machine, and the name of the home folder is that of the user.
    name = "home" if str(value) == os.path.expanduser("~") else value.name  # noqa: PTH111  this one raises nothing without a home
    return call(Ref(type(value)), write(name, place))


def _dim_hint(value: Any, _place: str, _write: _Write) -> Expression:
    """`Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC` of `dynamic_shapes`."""
    bounds = {name: literal(getattr(value, name)) for name in ("min", "max") if getattr(value, name) is not None}
    kind = Text(f"torch.export.Dim.{value.type.name}")
    return call(kind, keywords=bounds) if bounds else kind


def _dim(value: Any, place: str, write: _Write) -> Expression:
    """A named dim of `dynamic_shapes`, or one that is computed from another."""
    root, function = getattr(value, "root", None), getattr(value, "fn", None)
    if root is not None and function is not None:
        # NOTE: such a dim is a linear function of the other one (torch 2.13, export/dynamic_shapes.py).
        at_zero, at_one = int(function(0)), int(function(1))
        return Items(None, (f"{at_one - at_zero} * ", f" + {at_zero}" if at_zero else ""), (("", write(root, place)),))
    bounds = {}
    if value.min > 0:
        bounds["min"] = literal(int(value.min))
    if isinstance(value.max, int) and value.max < sys.maxsize:
        bounds["max"] = literal(int(value.max))
    return call(Text("torch.export.Dim"), literal(value.__name__), keywords=bounds)


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, str, _Write], Expression]], ...] = (
    (_is_sequence, _sequence),
    (_is_named_tuple, _named_tuple),
    (_is_mapping, _mapping),
    (_instance_of(enum.Enum), _enum_member),
    (_instance_of(functools.partial), _partial),
    (_instance_of(types.MethodType), _method),
    (_instance_of(slice), _slice),
    (_instance_of(range), _range),
    (_instance_of(pathlib.PurePath), _path),
    (_instance_of(type(torch.export.Dim.AUTO)), _dim_hint),
    (_instance_of(torch.export.Dim), _dim),
)
"""Whether a value is of a kind, and what writes it. The first kind that fits counts."""
