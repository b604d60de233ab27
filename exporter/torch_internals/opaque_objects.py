"""Objects that torch.export takes as inputs without looking into them, such as enum members."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Callable

from .patching import Slot, wrapped
from .python_values import is_a
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, _export/non_strict_utils.py. In 2.11, enum members are not among them.
_IS_OPAQUE = Symbol(
    "torch._library.opaque_object:is_opaque_value",
    without="enum members cannot be inputs",
    otherwise=lambda _: False,
)
_IS_CONSTANT = Symbol(
    "torch._export.non_strict_utils:_is_constant_argument",
    without="a model with enum members among its inputs cannot have dynamic dims",
)


def is_opaque(value: object) -> bool:
    """Whether the installed torch takes `value` as such an object."""
    return bool(_IS_OPAQUE.value(value))


def enums_as_constants() -> contextlib.AbstractContextManager[None]:
    """While it is open, torch.export takes enum members for constants where it looks for the dims of inputs; otherwise it refuses them."""
    if not _IS_CONSTANT.is_present:
        return contextlib.nullcontext()
    module, _, name = _IS_CONSTANT.path.partition(":")
    return wrapped(Slot(importlib.import_module(module), name), _is_constant)


def _is_constant(original: Callable[[object], bool], value: object) -> bool:
    return original(value) or (is_a(value, enum.Enum) and is_opaque(value))
