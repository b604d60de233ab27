"""Operators that somebody has written in Python: what they call can be exported in their place."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import torch

_REGISTERED = re.compile(r"^(\w+)(?:\[alias\])?: registered at (.+\.py):\d+ ", re.MULTILINE)
"""A line of the dispatcher's table that names a Python file (torch 2.11 to 2.15)."""
_KEYS = {"CompositeExplicitAutograd": "CPU", "CPU": "CPU", "CUDA": "CUDA"}
"""Under which keys a kernel is registered that computes, and the dispatch key that leads to it."""


@dataclasses.dataclass(frozen=True)
class PythonKernel:
    """An implementation of an operator in Python.

    Attributes:
        function: Calls it with the operator's arguments.
        file: Where it was registered.
    """

    function: Callable[..., Any]
    file: str


def python_kernel(target: torch._ops.OpOverload) -> PythonKernel | None:
    """The implementation in Python that torch would call for `target`; None if it is written in C++, or writes to its arguments."""
    # NOTE: `_dispatch_dump` is private (torch 2.11 to 2.15), but a kernel of C++ must not be called with fake tensors, which have no
    # data, and nothing public tells the two apart.
    dump = getattr(torch._C, "_dispatch_dump", None)
    if dump is None or target._schema.is_mutable:
        return None
    registered = dict(_REGISTERED.findall(dump(target.name())))
    for name, key in _KEYS.items():
        if name in registered:
            # NOTE: with keys of its own, the call goes past the modes that watch it, to the kernel; what that calls is watched again.
            keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
            return PythonKernel(functools.partial(target.redispatch, keys), registered[name])
    return None
