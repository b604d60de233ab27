"""Classes, functions and modules as they are in the running program: where they are defined, and what they refer to."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import pathlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from onnxplain.diagnostics import Interruption, describe, type_name
from onnxplain.source import locations
from onnxplain.torch_internals import code_objects
from onnxplain.torch_internals.operators import written_as
from onnxplain.torch_internals.python_values import is_a

from .expression import Unknown


def file_of(value: Any) -> str | None:
    """The file that defines a class or function."""
    elsewhere = None
    for each in vars(value).values() if isinstance(value, type) else [value]:
        code = code_objects.code_of(each) if callable(each) else None
        if code is not None and not code.co_filename.startswith("<string"):
            # NOTE: a class may have functions of other modules, as `activation = staticmethod(other.relu)` gives it.
            if not isinstance(value, type) or _globals_of(each, value) is not None:
                return code.co_filename
            elsewhere = elsewhere or code.co_filename
    return getattr(sys.modules.get(getattr(value, "__module__", None) or ""), "__file__", None) or elsewhere


def is_users(value: Any) -> bool:
    """Whether a class or function is defined in a file of the user."""
    file = file_of(value)
    return file is not None and locations.is_users(file)


def users_module(name: str) -> types.ModuleType | None:
    """The module of this name if it is the user's."""
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if path is None:
        # NOTE: a folder without __init__.py is a module without a file.
        path = next((f"{each}/__init__.py" for each in getattr(module, "__path__", ())), None)
    return module if path is not None and locations.is_users(path) else None


def namespace_of(value: Any) -> Mapping[str, Any] | None:
    """The global variables of the module that defines a class or function."""
    for each in vars(value).values() if isinstance(value, type) else [value]:
        found = _globals_of(each, value) if callable(each) else None
        if found is not None:
            return dict(found)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return None if module is None else vars(module)


def _globals_of(function: Any, value: Any) -> Mapping[str, Any] | None:
    """The global variables of a function, if it is of the module that defines `value`."""
    found = getattr(inspect.unwrap(function), "__globals__", None)
    return found if found is not None and found.get("__name__") == getattr(value, "__module__", None) else None


def is_plain(value: Any) -> bool:
    """Whether `value` is only data: a number, a text, a tensor, a path, or a container of such values."""
    if type(value) in (list, tuple, set, frozenset):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(map(is_plain, (*value, *value.values())))
    return value is None or is_a(value, bool, int, float, complex, str, bytes, torch.Tensor, argparse.Namespace, pathlib.PurePath)


def functions_of(value: Any) -> list[types.FunctionType]:
    """The functions of a class; a function itself."""
    if not isinstance(value, type):
        value = inspect.unwrap(value)
        return [value] if isinstance(value, types.FunctionType) else []
    found = []
    for each in vars(value).values():
        each = each.__func__ if isinstance(each, staticmethod | classmethod) else each.fget if isinstance(each, property) else each
        each = inspect.unwrap(each) if callable(each) else each
        if isinstance(each, types.FunctionType) and each.__qualname__.startswith(f"{value.__qualname__}."):
            found.append(each)
    return found


def closure_of(value: Any) -> dict[str, Any]:
    """The variables of enclosing functions that a class or function uses."""
    found: dict[str, Any] = {}
    for each in functions_of(value):
        found |= code_objects.named_outside(each)
    found.pop("__class__", None)
    return found


def resolved(namespace: Mapping[str, Any], dotted: list[str]) -> Any:
    """The object that a dotted name stands for; None if it is not reached through modules and classes."""
    first, *rest = dotted or [""]
    found = namespace.get(first)
    for part in rest:
        found = getattr(found, part, None) if isinstance(found, types.ModuleType | type) else None
    return found


def is_same(found: Any, value: Any) -> bool:
    """Whether `found` is `value`, or what a decorator made of it."""
    return found is value or value in (getattr(found, "__wrapped__", None), getattr(found, "function", None), written_as(found))


def kind_of(value: object) -> str:
    """The class of a value, for a message."""
    return type(value).__qualname__


@contextlib.contextmanager
def looked_at(place: str) -> Iterator[None]:
    """Raises `Unknown` for what code of the user raises, or exits with, while the block looks at the value at `place`.

    Such code is a method of the value or of its metaclass, such as `__getattr__`, `items` or `__eq__`.
    """
    try:
        yield
    except (Unknown, KeyboardInterrupt, Interruption):
        raise
    except BaseException as error:
        # NOTE: the classes are the user's, so they may raise anything.
        line = locations.raised_by_user(error)
        if line is None:
            raise
        raise Unknown(place, f"its code raised {type_name(error)} at {describe(line)}") from error
