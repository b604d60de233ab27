"""`int(...)`, `float(...)`, `range(...)`, `isinstance(...)` and `type(...)` of sizes, and `len(...)` of tensors, in a model's code.

Python makes plain numbers of sizes with the first three, which fixes them. While `kept` is open, these names stand for classes of the same
behaviour that leave symbolic sizes symbolic. A symbolic size is no instance of `int`, so that a model goes another way than in eager mode.
While `classes_kept` is open, `isinstance` and `type` stand for what takes it for one; `type` also gives the tensors in a capture, which are
of another class, their class of eager mode. `len`, which can only return a plain number, stands for what returns the size. Both concern
some modules only.
"""

from __future__ import annotations

import builtins
import math
import sys
import types
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from . import module_names, shape_env
from .code_objects import global_names
from .fake_tensors import FakeTensor
from .modules import named_modules
from .size_rows import Row, ranging

shape_env.leave_out(__file__)


class _Conversion(type):
    """The class of such a class: its calls are those of `int` or `float`, and so is `isinstance`."""

    plain: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        value: Any = args[0] if len(args) == 1 and not kwargs else None
        if type(value) is FakeTensor and value.numel() == 1:
            value = value.item()
        if type(value) is torch.SymBool:
            value = torch.sym_ite(value, 1, 0)
        if type(value) not in (torch.SymInt, torch.SymFloat):
            return cls.plain(*args, **kwargs)
        if cls.plain is float:
            return torch.sym_float(value)
        return value if type(value) is torch.SymInt else math.trunc(value)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (cls.plain, torch.SymFloat if cls.plain is float else torch.SymInt))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.plain)


class _Int(builtins.int, metaclass=_Conversion):
    plain = builtins.int


class _Float(builtins.float, metaclass=_Conversion):
    plain = builtins.float


_LIKE: dict[type, Any] = {torch.SymInt: 0, torch.SymFloat: 0.0, torch.SymBool: False}
"""What symbolic numbers are instances of in eager mode: the classes of these."""


def _isinstance(instance: object, class_or_tuple: Any, /) -> bool:
    like = _LIKE.get(type(instance))
    return builtins.isinstance(instance, class_or_tuple) or (like is not None and builtins.isinstance(like, class_or_tuple))


class _Class(builtins.type):
    """The class of such a `type`: it calls a symbolic size an `int`, and a tensor in a capture a tensor, and is `type` in all else."""

    def __new__(mcs, name: str, bases: tuple[builtins.type, ...], names: dict[str, Any], **kwargs: Any) -> Any:
        # NOTE: another thread may define a metaclass in the module now, and that class stays.
        given = tuple(builtins.type if isinstance(each, _Class) else each for each in bases)
        return super().__new__(mcs, name, bases, names) if given == bases else builtins.type(name, given, names, **kwargs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return builtins.type(*args, **kwargs)
        found = builtins.type(_LIKE.get(builtins.type(args[0]), args[0]))
        if found is FakeTensor:
            return torch.nn.Parameter if builtins.isinstance(args[0], torch.nn.Parameter) else torch.Tensor
        return found

    def __instancecheck__(cls, instance: object) -> bool:
        return builtins.isinstance(instance, builtins.type)

    def __subclasscheck__(cls, subclass: builtins.type) -> bool:
        return issubclass(subclass, builtins.type)


class _Type(builtins.type, metaclass=_Class):
    __module__, __qualname__ = "builtins", "type"


_Type.__name__ = "type"


def _len(value: Any, /) -> Any:
    size = value.shape[0] if isinstance(value, torch.Tensor) and value.ndim else None
    return size if builtins.isinstance(size, torch.SymInt) else builtins.len(value)


class _Listing(type):
    """The class of such a `list`: its calls and `isinstance` take rows of sizes for lists."""

    def __call__(cls, *args: Any) -> Any:
        return args[0] if len(args) == 1 and type(args[0]) is Row else builtins.list(*args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (builtins.list, Row))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, builtins.list)


class _List(builtins.list[Any], metaclass=_Listing):
    pass


def _count(value: Any, /) -> Any:
    return value.count if type(value) is Row else _len(value)


_CONVERSIONS: dict[str, Any] = {"int": _Int, "float": _Float, "range": ranging, "list": _List, "len": _count}
_COMPARED = frozenset({"int", "float", "bool", "Tensor", "Parameter"})
"""The names of the classes that a symbolic size, or a tensor of a capture, is not of."""


def kept(model: torch.nn.Module, names: Mapping[str, Collection[str]]) -> AbstractContextManager[None]:
    """While it is open, `int(...)`, `float(...)` and `range(...)` of sizes stay symbolic in some modules.

    Args:
        model: The model, whose classes may be in no module that Python knows.
        names: For each file that such modules are loaded from, those of the names in `NUMBERS` and `ROWS` that it only calls.
    """
    spaces = {file: _namespaces(model, file) for file in names}
    return _standing_for((each, name, _CONVERSIONS[name]) for file, found in names.items() for each in spaces[file] for name in found)


def classes_kept(functions: Iterable[types.FunctionType]) -> AbstractContextManager[None]:
    """While it is open, symbolic sizes are instances of `int` to `functions` and to others in their modules, and `len` returns them."""
    asking: list[tuple[dict[str, Any], str, Any]] = []
    for function in functions:
        named = global_names(function.__code__)
        if "isinstance" in named:
            asking.append((function.__globals__, "isinstance", _isinstance))
        if "len" in named:
            asking.append((function.__globals__, "len", _len))
        if "type" in named and not named.isdisjoint(_COMPARED):
            asking.append((function.__globals__, "type", _Type))
    return _standing_for(asking)


def _standing_for(names: Iterable[tuple[dict[str, Any], str, Any]]) -> AbstractContextManager[None]:
    """While it is open, builtin names have other values for code with these global variables."""
    # NOTE: a module may have its own.
    return module_names.standing_for(each for each in names if module_names.original(each[0], each[1]) is None)


def _namespaces(model: torch.nn.Module, file: str) -> list[dict[str, Any]]:
    """The global variables of the code in `file`."""
    classes = dict.fromkeys(cls for _, module in named_modules(model) for cls in type(module).__mro__)
    functions = [each for cls in classes for each in vars(cls).values() if isinstance(each, types.FunctionType)]
    found = [each.__globals__ for each in functions if each.__code__.co_filename == file]
    return found + [vars(module) for module in list(sys.modules.values()) if getattr(module, "__file__", None) == file]
