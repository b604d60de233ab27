"""Hooks that a capture that fails leaves in torch, and with them the model and its weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .put_back import put_back
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, export/_trace.py: 2.11 does not remove its hook for assigned buffers if the model raises.
_HOOKS: Symbol = Symbol(
    "torch.nn.modules.module:_global_buffer_registration_hooks",
    without="with torch 2.11, the model of a failed export stays in memory",
    otherwise={},
)
_NAME = "register_buffer_assignment_hook"


@contextlib.contextmanager
def removed(model: torch.nn.Module) -> Iterator[None]:
    """Removes torch's own hooks about `model` at the end."""

    def undo() -> None:
        hooks: dict[int, Any] = _HOOKS.value
        for key, hook in list(hooks.items()):
            if getattr(hook, "__qualname__", "").startswith(f"{_NAME}.") and any(each.cell_contents is model for each in hook.__closure__):
                hooks.pop(key, None)

    with put_back(undo):
        yield
