"""Variables outside the model's objects that its code can assign: global ones, those of enclosing functions, and attributes of classes."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onnxplain.source import locations
from onnxplain.torch_internals.code_objects import assigned_globals, cells_of, named_outside

from . import named_functions


@dataclasses.dataclass(frozen=True)
class Variables:
    """Variables that one object holds.

    Attributes:
        holder: What holds them, such as the name of a class.
        values: Reads them: the value of each name that has one.
        put: Assigns a value to a name.
        drop: Removes a name.
    """

    holder: str
    values: Callable[[], Mapping[str, Any]]
    put: Callable[[str, Any], object]
    drop: Callable[[str], object]

    def put_back(self, before: Mapping[str, Any]) -> None:
        """Assigns again what `values` gave before."""
        now = self.values()
        for name in now.keys() - before.keys():
            self.drop(name)
        for name in [name for name, value in before.items() if name not in now or now[name] is not value]:
            self.put(name, before[name])


def reached_from(classes: Iterable[type], objects: Iterable[Mapping[str, Any]]) -> list[Variables]:
    """The variables that the methods of `classes`, the functions among the attributes of `objects`, and those that they name can assign.

    Of functions, only the user's count.
    """
    classes = list(classes)
    reached = named_functions.reached([*map(vars, classes), *objects])
    functions = [each for each in reached if locations.is_users(each.__code__.co_filename)]
    namespaces = {id(each.__globals__): each.__globals__ for each in functions}
    assigned: dict[int, set[str]] = {}
    for each in functions:
        assigned.setdefault(id(each.__globals__), set()).update(assigned_globals(each.__code__))
    return [
        *map(_of_class, classes),
        *(_of_function(each) for each in functions if each.__closure__),
        *(_attributes_of(each) for each in functions),
        *(_defaults_of(each) for each in functions if each.__defaults__ or each.__kwdefaults__),
        *(_of_namespace(namespaces[key], names) for key, names in assigned.items() if names),
    ]


def _of_class(cls: type) -> Variables:
    def values() -> dict[str, Any]:
        return {name: value for name, value in vars(cls).items() if not name.startswith("__") and not _is_method(value)}

    # NOTE: not `setattr`, which a metaclass may define.
    return Variables(cls.__qualname__, values, functools.partial(type.__setattr__, cls), functools.partial(type.__delattr__, cls))


def _of_function(function: types.FunctionType) -> Variables:
    cells = cells_of(function)

    def put(name: str, value: Any) -> None:
        cells[name].cell_contents = value

    def drop(name: str) -> None:
        del cells[name].cell_contents

    return Variables(function.__qualname__, functools.partial(named_outside, function), put, drop)


def _attributes_of(function: types.FunctionType) -> Variables:
    attributes = vars(function)

    def values() -> dict[str, Any]:
        return {name: value for name, value in attributes.items() if not name.startswith("__")}

    return Variables(function.__qualname__, values, attributes.__setitem__, attributes.pop)


def _defaults_of(function: types.FunctionType) -> Variables:
    """The defaults of arguments. No function assigns them, but it may change a list that is one."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    given = function.__defaults__ or ()
    defaults = {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(function.__kwdefaults__ or {})}
    return Variables(f"{function.__qualname__}()", lambda: defaults, lambda *_: None, lambda *_: None)


def _of_namespace(namespace: dict[str, Any], names: set[str]) -> Variables:
    def values() -> dict[str, Any]:
        return {name: namespace[name] for name in names if name in namespace}

    return Variables("globals", values, namespace.__setitem__, namespace.pop)


def _is_method(value: object) -> bool:
    return isinstance(value, type) or hasattr(type(value), "__get__")
