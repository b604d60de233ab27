"""Copies of a model. A run changes only the copies, and no other code has an edited function."""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch

from onnxplain.source import locations
from onnxplain.torch_internals import code_objects

_T = TypeVar("_T")

_WEIGHTS = 256 * 1024**2
"""The most bytes of parameters that are copied; README says so."""

_LOOKED_INTO = 10_000
"""The length up to which lists, dicts and sets are copied."""


class Copies:
    """Copies torch modules, and the functions, classes and Python modules that lead to edited functions.

    The names in a copied function refer to copies; objects that do not lead to edited functions are shared. A copy of a class is a subclass
    of which neither its base classes nor its metaclass are told, but Python lists it in `__subclasses__()` while it lives.

    Args:
        edited: New code of functions, by their old code.
        callers: The code of the functions that call them, directly or not.
        weights: How many bytes of parameters are copied; further ones are shared. A model may write to its parameters.
    """

    def __init__(
        self, edited: Mapping[types.CodeType, types.CodeType] | None = None, callers: Iterable[types.CodeType] = (), weights: int = _WEIGHTS
    ) -> None:
        self._weights = weights
        edited = edited or {}
        # NOTE: by id, because different files may have equal code.
        self._codes = {id(code): code for code in callers} | {id(old): new for old, new in edited.items()}
        self._files = {code.co_filename for code in (*edited, *self._codes.values())}
        loaded = list(sys.modules.items()) if self._files else []
        self._names = {name for name, each in loaded if getattr(each, "__file__", None) in self._files}
        # NOTE: with the original, which must live as long as its id is a key.
        self._made: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        """The copy of `value`, or `value` itself if it needs none."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        copy = next((copy for kind, copy in self._ways() if issubclass(type(value), kind)), self._instance)
        try:
            return copy(value)
        except TypeError:
            # NOTE: for example an instance of a class that is written in C, or a class that allows no subclasses.
            return self._keep(value, value)

    def _ways(self) -> Iterable[tuple[Any, Callable[[Any], Any]]]:
        shared = (torch.jit.ScriptModule, str, int, float, enum.Enum, torch.dtype, torch.device)
        yield shared, lambda value: value
        yield torch.nn.Parameter, self._parameter
        yield torch.nn.Module, self._module
        yield torch.Tensor, self._tensor
        yield (dict, list, tuple, set), self._container
        yield types.FunctionType, self._function
        yield types.MethodType, self._method
        yield functools.partial, self._partial
        yield types.ModuleType, self._python_module
        yield type, self._class
        yield (staticmethod, classmethod), lambda value: type(value)(self.of(value.__func__))
        yield property, self._property

    def _keep(self, original: Any, made: _T) -> _T:
        self._made[id(original)] = (original, made)
        return made

    def _parameter(self, parameter: torch.nn.Parameter) -> torch.nn.Parameter:
        if type(parameter) is not torch.nn.Parameter or (size := parameter.nbytes) > self._weights:
            return self._keep(parameter, parameter)
        self._weights -= size
        made = torch.nn.Parameter(parameter.detach().clone(), parameter.requires_grad)
        vars(made).update(vars(parameter))
        return self._keep(parameter, made)

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._keep(tensor, tensor.detach().clone().requires_grad_(tensor.requires_grad)) if tensor.is_leaf else tensor

    def _module(self, module: torch.nn.Module) -> torch.nn.Module:
        made: torch.nn.Module = self._blank(module)
        for name, value in vars(module).items():
            object.__setattr__(made, name, self.of(value))
        return made

    def _instance(self, value: Any) -> Any:
        cls = type(value)
        if self._class(cls) is cls and not _is_users(cls):
            return value
        made = self._blank(value)
        # NOTE: objects with slots need no `__dict__`.
        if values := getattr(value, "__dict__", None):
            vars(made).update({name: self.of(each) for name, each in values.items()})
        return made

    def _blank(self, value: Any) -> Any:
        cls = type(value)
        made: Any = self._keep(value, object.__new__(self._class(cls)))
        for name in {name for base in cls.__mro__ for name in _slots(base)}:
            with contextlib.suppress(AttributeError):
                object.__setattr__(made, name, self.of(getattr(value, name)))
        return made

    def _container(self, values: Any) -> Any:
        if len(values) > _LOOKED_INTO:
            return values
        if type(values) in (dict, collections.OrderedDict):
            made: Any = self._keep(values, type(values)())
            made.update({key: self.of(each) for key, each in values.items()})
            return made
        if type(values) is list:
            made = self._keep(values, [])
            made.extend(map(self.of, values))
            return made
        if type(values) is tuple:
            copied = tuple(map(self.of, values))
            return copied if any(one is not other for one, other in zip(copied, values, strict=True)) else values
        return self._keep(values, set(values)) if type(values) is set else values

    def _function(self, function: types.FunctionType) -> Any:
        code = self._codes.get(id(code_objects.code_of_own(function)))
        if code is None and not self._leads_on(function):
            return function
        made = code_objects.bare_copy(function, code, self._globals(function.__globals__))
        self._keep(function, made)
        code_objects.name_outside(made, {name: self._named(each) for name, each in code_objects.named_outside(function).items()})
        made.__dict__.update({name: self.of(each) for name, each in vars(function).items()})
        return made

    def _leads_on(self, function: types.FunctionType) -> bool:
        """Whether `function` is a decorator's wrapper of a copied function."""
        wrapped = getattr(function, "__wrapped__", None)
        while wrapped is not None:
            if id(code_objects.code_of_own(wrapped)) in self._codes:
                return True
            wrapped = getattr(wrapped, "__wrapped__", None)
        return False

    def _globals(self, namespace: dict[str, Any]) -> dict[str, Any]:
        if id(namespace) in self._made:
            made: dict[str, Any] = self._made[id(namespace)][1]
            return made
        made = self._keep(namespace, dict(namespace))
        made.update({name: self._named(value) for name, value in namespace.items() if not name.startswith("__")})
        return made

    def _named(self, value: Any) -> Any:
        # NOTE: `super` searches after the class that it is given, and that class comes after its copies in the method resolution order.
        return value if isinstance(value, type) and issubclass(value, torch.nn.Module) else self.of(value)

    def _method(self, method: types.MethodType) -> types.MethodType:
        return types.MethodType(self.of(method.__func__), self.of(method.__self__))

    def _partial(self, partial: Any) -> Any:
        keywords = {name: self.of(value) for name, value in partial.keywords.items()}
        return type(partial)(self.of(partial.func), *map(self.of, partial.args), **keywords)

    def _property(self, given: property) -> property:
        return property(*(None if each is None else self.of(each) for each in (given.fget, given.fset, given.fdel)))

    def _python_module(self, module: types.ModuleType) -> types.ModuleType:
        leads = module.__name__ in self._names or any(name.startswith(f"{module.__name__}.") for name in self._names)
        if not leads:
            return module
        made: types.ModuleType = self._keep(module, types.ModuleType.__new__(type(module)))
        # NOTE: without it, a module of Python 3.10 has no namespace.
        types.ModuleType.__init__(made, module.__name__)
        vars(made).update(self._globals(vars(module)))
        return made

    def _class(self, cls: type) -> type:
        if id(cls) in self._made:
            made: type = self._made[id(cls)][1]
            return made
        owners = [base for base in cls.__mro__ if any(map(self._is_copied, vars(base).values()))]
        if not owners:
            return self._keep(cls, cls)
        # NOTE: each copy comes right before its class in the resolution order, so that `super` finds it where it found the original.
        changed = []
        for base in owners:
            functions = {name: self.of(value) for name, value in vars(base).items() if self._is_copied(value)}
            changed.append(_subclass(base, (base,), functions))
        return self._keep(cls, _subclass(cls, tuple(changed) if owners[0] is cls else (cls, *changed), {}))

    def _is_copied(self, value: Any) -> bool:
        functions = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
        return any(
            isinstance(each, types.FunctionType) and (id(code_objects.code_of_own(each)) in self._codes or self._leads_on(each))
            for each in functions
        )


def _subclass(cls: type, bases: tuple[type, ...], attributes: Mapping[str, Any]) -> type:
    # NOTE: a metaclass of other code may keep the classes that it makes; Python's own ones, such as ABCMeta, keep data that a class needs.
    metaclass: Any = next(each for each in inspect.getmro(type(cls)) if each.__module__.partition(".")[0] in sys.stdlib_module_names)
    # NOTE: it comes first, so that no base class learns of the subclass, which the base might keep.
    quiet = type("Quiet", (), {"__init_subclass__": classmethod(lambda _: None)})
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, **attributes}
    made: type = metaclass.__new__(type(cls), cls.__name__, (quiet, *bases), named)
    return made


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_users(cls: type) -> bool:
    try:
        return locations.is_users(inspect.getfile(cls))
    except (TypeError, OSError):
        return False
