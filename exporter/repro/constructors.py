"""Modules of torch as calls of their constructors, which are tried out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .expression import Expression, Items, Ref, call, literal

_UNKNOWN = inspect.Parameter.empty


def constructor_call(
    module: torch.nn.Module, write: Callable[[Any], Expression], facts: Callable[[torch.nn.Module], object]
) -> Expression | None:
    """The call of a constructor of torch that makes the like of `module`; None if there is none.

    Args:
        module: Any module.
        write: Writes an argument, or raises an exception.
        facts: All that is known of a module but its numbers and its device. Equal facts mean that modules are alike.
    """
    cls = type(module)
    if not cls.__module__.startswith(("torch.nn.modules.", "torch.ao.nn.")):
        return None
    given: list[Expression] = []
    keywords: dict[str, Expression] = {}
    arguments: dict[str, Any] = {}
    try:
        for name, parameter in _parameters(cls).items():
            value = _argument(module, name, parameter)
            # NOTE: torch.nn.GRU refuses the argument `proj_size`, whose default it has (torch 2.13).
            if value is _UNKNOWN or (parameter.default is not _UNKNOWN and value == parameter.default):
                continue
            arguments[name] = value
            if parameter.default is _UNKNOWN and not keywords:
                given.append(write(value))
            else:
                keywords[name] = write(value)
        if facts(_instance(cls, arguments)) != facts(module):
            return None
    except Exception:  # noqa: BLE001  a constructor may raise anything about an argument that was guessed from attributes
        # NOTE: the script then holds the module with everything in it.
        return None
    devices = {str(each.device) for each in (*module.parameters(), *module.buffers())} - {"cpu"}
    if len(devices) > 1:
        return None
    made = call(Ref(cls), *given, keywords=keywords)
    return Items(made, (".to(", ")"), (("", literal(devices.pop())),)) if devices else made


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The parameters of a constructor. If it passes keywords on, those of the base class are included."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        signature = inspect.signature(base.__init__).parameters  # type: ignore[misc]  # any class of the MRO, not a subclass of it
        found |= {name: each for name, each in signature.items() if name not in found and name not in ("self", "mode")}
        if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.values()):
            break
    return found


def _instance(cls: type, arguments: Mapping[str, Any]) -> torch.nn.Module:
    """A module of torch, if possible without memory for its weights. The state of the random number generator does not change."""
    with torch.random.fork_rng(devices=[]):
        try:
            with torch.device("meta"):
                made = cls(**arguments)
        except Exception:  # noqa: BLE001  some constructors compute with numbers that the meta device does not have
            made = cls(**arguments)
    assert isinstance(made, torch.nn.Module)
    return made


def _argument(module: torch.nn.Module, name: str, parameter: inspect.Parameter) -> Any:
    """The value that `module` was probably made with; `_UNKNOWN` if its attributes do not tell."""
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) or name == "device":
        return _UNKNOWN
    if name == "dtype":
        first = next((each.dtype for each in module.parameters()), parameter.default)
        return parameter.default if first is torch.float32 and parameter.default is None else getattr(module, "dtype", first)
    value = getattr(module, name, _UNKNOWN)
    if isinstance(parameter.default, bool) and not isinstance(value, bool):
        # NOTE: `bias=True` becomes a tensor, or a method that returns one.
        tensor = value() if inspect.ismethod(value) else value
        return parameter.default if value is _UNKNOWN else tensor is not None
    return _UNKNOWN if inspect.ismethod(value) else value
