"""Keyword inputs that `forward` takes as `**kwargs` may have dynamic shapes.

torch.export compares `dynamic_shapes` with the inputs twice. Once, the inputs of `**kwargs` are a dict under the name of that parameter;
the other time, they stand beside the other inputs. No `dynamic_shapes` fits both. Here they stand beside the others both times.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch

from .patching import Slot, all_wrapped
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15: export/dynamic_shapes.py defines the function, the others import it.
_USERS = [
    Symbol(f"{module}:_combine_args", without="dims of inputs that forward takes as **kwargs cannot be dynamic")
    for module in ("torch._export.non_strict_utils", "torch.export._trace", "torch.export.dynamic_shapes", "torch._dynamo.eval_frame")
]

_MENDED = "_combine_args_for_tracing"
"""A function of torch 2.15, which compares the same way both times."""


def beside_others() -> contextlib.AbstractContextManager[None]:
    """While it is open, torch.export takes the inputs of `**kwargs` for inputs by name."""
    users = [each.path.partition(":") for each in _USERS if each.is_present and not hasattr(torch.export.dynamic_shapes, _MENDED)]
    return all_wrapped((Slot(importlib.import_module(module), name), _flat) for module, _, name in users)


def _flat(otherwise: Callable[..., dict[str, Any]], model: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    inputs = dict(otherwise(model, args, kwargs))
    forward = getattr(model, "forward", model)
    return inputs if isinstance(model, torch.export.ExportedProgram) else beside(inputs, inspect.signature(forward))


def beside(inputs: dict[str, Any], signature: inspect.Signature) -> dict[str, Any]:
    """The inputs by parameter, with those of `**kwargs` beside the others."""
    variadic = variadic_keywords(signature)
    return {name: each for name, each in inputs.items() if name != variadic} | dict(inputs.get(variadic, {}))


def variadic_keywords(signature: inspect.Signature) -> str:
    """The name of the parameter `**kwargs`; empty if there is none."""
    return next((each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD), "")
