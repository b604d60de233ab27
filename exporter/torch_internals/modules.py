"""What a module keeps: hooks, parameters and buffers as they are registered, which of these no state dict has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

# NOTE: read in torch 2.11, 2.13 and 2.15, nn/modules/module.py.
REGISTERED = ("_parameters", "_buffers", "_modules")
"""The attributes that hold what is registered."""
HOOKS = {"_forward_pre_hooks": "register_forward_pre_hook", "_forward_hooks": "register_forward_hook"}
"""The attributes that hold hooks, and the methods that register one."""
NEW_CLASS, NEW_PROPERTY = "torch.nn.utils.parametrize._inject_new_class", "torch.nn.utils.parametrize._inject_property"
"""The functions (nn/utils/parametrize.py) that make a module parametrized, of which one changes its class, the other a parameter."""


def forward_hooks(module: torch.nn.Module) -> Iterator[Callable[..., Any]]:
    """The hooks that run before and after `forward`."""
    for name in HOOKS:
        yield from getattr(module, name, {}).values()


def parameters(module: torch.nn.Module) -> Mapping[str, torch.nn.Parameter | None]:
    """Its own parameters, those that are None included."""
    return module._parameters


def buffers(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Its own buffers, those that are None included; what is put there is the buffer from then on."""
    return module._buffers


def children(module: torch.nn.Module) -> Mapping[str, torch.nn.Module | None]:
    """Its own submodules, those that are None and those that it has twice included."""
    return module._modules


def without_state(module: torch.nn.Module) -> set[str]:
    """The names of its own buffers that no state dict has."""
    return module._non_persistent_buffers_set


def scripted_name(module: torch.jit.ScriptModule) -> str:
    """The name that TorchScript gave to the class of a scripted module."""
    return str(module._c._type().qualified_name())
