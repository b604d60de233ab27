"""The calls of modules in which an FX node was made, as torch.export records them."""

from __future__ import annotations

import dataclasses
import functools
import re

import torch

_NONE = "_empty_nn_module_stack_from_metadata_hook"
"""The path that torch.export writes where it knows of no module (read in torch 2.13)."""


ModuleStack = tuple[tuple[str, str, str], ...]


@dataclasses.dataclass(frozen=True)
class ModuleCall:
    """A call of a module.

    Attributes:
        key: Tells two calls of one module apart.
        path: The module's path, by the model's attributes; empty for the model itself.
        class_name: The module's class, with its Python module: `torch.nn.modules.linear.Linear`.
    """

    key: str
    path: str
    class_name: str


def module_calls(node: torch.fx.Node) -> tuple[ModuleCall, ...]:
    """The calls in which `node` was made, outermost first."""
    return calls_of(module_stack(node))


def module_stack(node: torch.fx.Node) -> ModuleStack:
    """The modules in which `node` was made, outermost first, as torch.export records them: keys, paths and classes."""
    # NOTE: not the classes themselves, which a cache would keep alive.
    stack = node.meta.get("nn_module_stack") or {}
    return tuple([(key, path, cls if isinstance(cls, str) else class_name(cls)) for key, (path, cls) in stack.items() if path != _NONE])


@functools.lru_cache(maxsize=4096)
def calls_of(stack: ModuleStack) -> tuple[ModuleCall, ...]:
    """The calls in a stack. The operators of one module have equal stacks."""
    return tuple(ModuleCall(f"{key} {path}", _path(path), name) for key, path, name in stack)


def path_and_class(path: str, cls: type | str) -> tuple[str, str] | None:
    """A module's path and its class, as in a `ModuleCall`, for what torch.export records of a call; None if it knows of no module."""
    return None if path == _NONE else (_path(path), class_name(cls))


def module_path(node: torch.fx.Node) -> str:
    """The path of the innermost submodule in which `node` was made, by the model's attributes."""
    stack = node.meta.get("nn_module_stack") or {}
    return next((_path(path) for path, _ in reversed(stack.values()) if path != _NONE), "")


def class_name(cls: type | str) -> str:
    """The name of a class, as in a `ModuleCall`. torch.export writes names, and other graphs have the classes themselves."""
    return cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"


@functools.lru_cache(maxsize=4096)
def _path(path: str) -> str:
    # NOTE: TorchDynamo may name the root `L['self']` and number repeated calls of one module `layer@1` (torch 2.13, _dynamo/utils.py).
    path = re.sub(r"^L\['self'\]\.?|^L__self___?|^_export_root\.?", "", path)
    return re.sub(r"@\d+", "", path)
