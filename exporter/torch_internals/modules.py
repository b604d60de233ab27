"""The registered parts of a module: its hooks, parameters, buffers and submodules, and which buffers no state dict has."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .patching import Slot, wrapped
from .python_values import is_a

# NOTE: read in torch 2.11, 2.13 and 2.15, nn/modules/module.py.
REGISTERED = ("_parameters", "_buffers", "_modules")
"""The attributes that hold the registered parts."""
HOOKS = {"_forward_pre_hooks": "register_forward_pre_hook", "_forward_hooks": "register_forward_hook"}
"""The attributes that hold hooks, and the methods that register one."""
NEW_CLASS, NEW_PROPERTY = "torch.nn.utils.parametrize._inject_new_class", "torch.nn.utils.parametrize._inject_property"
"""The functions (nn/utils/parametrize.py) that make a module parametrized, of which one changes its class, the other a parameter."""


def forward_hooks(module: torch.nn.Module) -> Iterator[Callable[..., Any]]:
    """The hooks that run before and after `forward`."""
    for name in HOOKS:
        yield from getattr(module, name, {}).values()


def named_modules(model: torch.nn.Module, path: str = "") -> Iterator[tuple[str, torch.nn.Module]]:
    """As `model.named_modules()`, also for modules that have no hash."""
    # NOTE: a loop, since modules may be nested more deeply than Python calls may be.
    seen: set[int] = set()
    left = [(path, model)]
    while left:
        path, module = left.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield path, module
            inner = [(f"{path}.{name}" if path else name, child) for name, child in module._modules.items() if is_a(child, torch.nn.Module)]
            left += reversed(inner)


def parameters(module: torch.nn.Module) -> Mapping[str, torch.nn.Parameter | None]:
    """Its direct parameters, including those that are None."""
    return module._parameters


def buffers(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Its direct buffers, including those that are None. A change of the dict changes the module."""
    return module._buffers


def children(module: torch.nn.Module) -> Mapping[str, torch.nn.Module | None]:
    """Its direct submodules, including those that are None and those that it has twice."""
    return module._modules


def without_state(module: torch.nn.Module) -> set[str]:
    """The names of its direct buffers that no state dict has."""
    return module._non_persistent_buffers_set


def scripted_name(module: torch.jit.ScriptModule) -> str:
    """The name that TorchScript gave to the class of a scripted module."""
    return str(module._c._type().qualified_name())


def idle_conversions() -> contextlib.AbstractContextManager[None]:
    """While it is open, `module.to(...)` leaves modules alone that have the device and the dtype already, as it does outside a capture.

    torch replaces all parameters of the module, which fails for the stand-ins of parameters during a capture.
    """
    return wrapped(Slot(torch.nn.Module, "to"), _to)


def _to(original: Callable[..., Any], module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    # NOTE: read in torch 2.11, 2.13 and 2.15: `Module.to` parses its arguments so, and converts floating-point and complex tensors.
    device, dtype, _, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    tensors = itertools.chain(module.parameters(), module.buffers())
    if memory_format is None and all(
        device in (None, each.device) and (dtype in (None, each.dtype) or not (each.is_floating_point() or each.is_complex()))
        for each in tensors
    ):
        return module
    return original(module, *args, **kwargs)
