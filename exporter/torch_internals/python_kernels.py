"""Operators that users have written in Python: an export replaces them by the operators that they call."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .operators import OpOverload, schema
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15. A C++ kernel must not be called with fake tensors, which have no data, and no public function
# tells C++ kernels from Python kernels.
_WITHOUT = "operators that users have written in Python have no translation"
_NEEDED = [
    Symbol("torch._C:_dispatch_dump", without=_WITHOUT),
    Symbol("torch._C:DispatchKeySet", without=_WITHOUT),
    Symbol("torch._ops:OpOverload.redispatch", without=_WITHOUT),
]

_REGISTERED = re.compile(r"^(\w+)(?:\[alias\])?: registered at (.+\.py):\d+ ", re.MULTILINE)
"""A line of the dispatcher's table that names a Python file (torch 2.11 to 2.15)."""
_KEYS = {"CompositeExplicitAutograd": "CPU", "CPU": "CPU", "CUDA": "CUDA"}
"""The keys under which kernels that compute are registered, and the dispatch key that leads to each."""


_LOOKING = frozenset(
    {"__array__", "__bool__", "__dlpack__", "__float__", "__index__", "__int__", "data_ptr", "item", "numpy", "tolist", "untyped_storage"}
)


@dataclasses.dataclass(frozen=True)
class PythonKernel:
    """An implementation of an operator in Python.

    Attributes:
        function: Calls the implementation with the operator's arguments.
        file: Where it was registered.
    """

    function: Callable[..., Any]
    file: str


class WithoutData(TorchFunctionMode):
    """Refuses functions that look at a tensor's data: fake tensors have none, and numpy would get arbitrary numbers from them."""

    def __torch_function__(self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Calls `func`. Raises TypeError if it looks at data."""
        del types
        if (name := getattr(func, "__name__", "")) in _LOOKING:
            raise TypeError(f"{name} looks at the data of a tensor")
        return func(*args, **(kwargs or {}))


def python_kernel(target: OpOverload) -> PythonKernel | None:
    """The implementation in Python that torch would call for `target`; None if it is written in C++, or writes to its arguments."""
    if not all(each.is_present for each in _NEEDED) or schema(target).is_mutable:
        return None
    registered = dict(_REGISTERED.findall(torch._C._dispatch_dump(target.name())))
    for name, key in _KEYS.items():
        if name in registered:
            # NOTE: with these keys the call bypasses the modes that watch it and goes to the kernel, whose calls are watched again.
            keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
            return PythonKernel(functools.partial(target.redispatch, keys), registered[name])
    return None
