"""An operator's Python kernels for a dispatch key, replaced temporarily."""

from __future__ import annotations

from typing import Any

from .patching import Slot
from .symbols import Attribute, Symbol

DISPATCH_KEYS = Symbol("torch._C:DispatchKey", without="recurrent layers fix their length, and an export may refuse loops over weights")

# NOTE: read in torch 2.11, 2.13 and 2.15, _ops.py: the kernels of an operator, and a cache that keeps resolved kernels.
_KERNELS = Attribute("torch._ops:OperatorBase.py_kernels", without=DISPATCH_KEYS.without, otherwise={})
_RESOLVED = Attribute("torch._ops:OperatorBase._dispatch_cache", without=DISPATCH_KEYS.without)


class KernelSlot(Slot):
    """The kernel of an operator for a dispatch key."""

    def __init__(self, operator: Any, key: Any) -> None:
        super().__init__(operator, str(key))
        self._key = key

    def get(self) -> Any:
        """The kernel."""
        return self.owner.py_kernels[self._key]

    def put(self, function: Any) -> None:
        """Another kernel."""
        self.owner.py_kernels[self._key] = function
        self.owner._dispatch_cache.clear()


def slots(operators: list[Any], *keys: str) -> list[KernelSlot]:
    """The kernels that `operators` have for dispatch keys of these names, if the installed torch has them."""
    if not _RESOLVED.is_present:
        return []
    known = [key for name in keys if (key := getattr(DISPATCH_KEYS.value, name, None)) is not None]
    return [KernelSlot(operator, key) for operator in operators for key in known if key in _KERNELS.of(operator)]
