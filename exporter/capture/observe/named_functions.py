"""The functions that the code of classes and objects can call, as far as it names them."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnxplain.source import locations
from onnxplain.torch_internals.code_objects import global_names, named_outside


def reached(holders: Iterable[Mapping[str, Any]]) -> list[types.FunctionType]:
    """The functions and methods in `holders`, those that the user's code among them names, and so on. None is torch's or Python's.

    Of those that a library's code names, only functions of the same module are reached.

    Args:
        holders: The attributes of classes and objects.
    """
    found: dict[int, types.FunctionType] = {}
    waiting = [each for holder in holders for each in _functions(holder)]
    while waiting:
        function = waiting.pop()
        if id(function) in found or locations.is_internal(function.__code__.co_filename):
            continue
        found[id(function)] = function
        names = global_names(function.__code__)
        if not locations.is_users(function.__code__.co_filename):
            # NOTE: libraries name each other's functions by the thousand.
            own = function.__globals__
            named = {name: own[name] for name in names if name in own}
            waiting += [each for each in _functions(named) if each.__globals__ is own]
            continue
        namespaces = [function.__globals__]
        namespaces += [vars(each) for name in names if isinstance(each := function.__globals__.get(name), types.ModuleType)]
        named = {f"{at}.{name}": space[name] for at, space in enumerate(namespaces) for name in names if name in space}
        named |= named_outside(function)
        waiting += _functions(named)
        waiting += [each for cls in named.values() if isinstance(cls, type) for each in _functions(vars(cls))]
    return list(found.values())


def _functions(values: Mapping[str, Any]) -> Iterator[types.FunctionType]:
    for value in list(values.values()):
        bound = isinstance(value, staticmethod | classmethod | types.MethodType)
        inner = value.__func__ if bound else value.fget if isinstance(value, property) else value
        if isinstance(inner, types.FunctionType):
            yield inner
