"""The names by which a script refers to classes, functions and operators."""

from __future__ import annotations

import sys
import types
from typing import Any

from onnxplain.torch_internals.operators import OpOverload, OpOverloadPacket
from onnxplain.torch_internals.python_values import is_a

from .expression import Ref
from .live_objects import is_users


def named(value: Any) -> Ref | None:
    """A reference to a class, function or operator that the script can import or copy; None for other values."""
    if is_a(value, OpOverload, OpOverloadPacket):
        return Ref(value)
    if not is_a(value, type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType):
        return None
    return Ref(value) if is_users(value) or public_name(value) is not None else None


def public_name(value: Any) -> tuple[str, str] | None:
    """The module to import for a class or function of an installed package, and its name there; None if no module has it."""
    module = getattr(value, "__module__", None) or ""
    for place in ("builtins", "torch", "torch.nn", "torch.nn.functional", module.partition(".")[0], module):
        for name in (value.__name__, value.__qualname__):
            found: Any = sys.modules.get(place)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is value:
                return place, name
    return None
