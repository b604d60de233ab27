"""Loops are captured and compared without their gradients: an exported model has none.

For a loop over weights torch works out the gradients before it runs, which takes long, and which refuses what inference does not: a
Python int among what a `while_loop` carries, say.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

_LOOPS = ("associative_scan", "map_impl", "scan", "while_loop")


@contextlib.contextmanager
def left_out() -> Iterator[None]:
    """While it is open, loops are run as if no tensor needed a gradient."""
    # NOTE: read in torch 2.13, _ops.py: `py_autograd_impl` puts a kernel there that goes below autograd by itself where
    # no gradient is needed. Without it torch's own way remains.
    key = getattr(torch._C.DispatchKey, "Autograd", None)
    below = getattr(torch._C, "_AutoDispatchBelowAutograd", None)
    saved = []
    try:
        for operator in (getattr(torch.ops.higher_order, name, None) for name in _LOOPS):
            kernels: dict[Any, Any] = getattr(operator, "py_kernels", {})
            if key in kernels and below is not None:
                saved.append((operator, kernels[key]))
                _put(operator, key, _below(below, operator))
        yield
    finally:
        for operator, kernel in saved:
            _put(operator, key, kernel)


def _below(below: Any, operator: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        with below():
            return operator(*args, **kwargs)

    return run


def _put(operator: Any, key: Any, kernel: Any) -> None:
    operator.py_kernels[key] = kernel
    # NOTE: resolved kernels are cached.
    getattr(operator, "_dispatch_cache", {}).clear()
