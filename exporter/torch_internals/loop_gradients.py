"""Captures and runs loops and branches without their gradients: an exported model has none.

For a loop over weights, torch computes the gradients before it runs. That takes long, and it refuses loops that inference allows, such as
a `while_loop` that carries a Python int. For a `cond` that is not compiled, it refuses branches with weights.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from . import operator_kernels
from .patching import all_wrapped
from .symbols import Symbol

_OPERATORS = ("associative_scan", "cond", "map_impl", "scan", "while_loop")
_BELOW = Symbol("torch._C:_AutoDispatchBelowAutograd", without="loops over weights take longer, and torch refuses some loops and branches")


def left_out() -> contextlib.AbstractContextManager[None]:
    """While it is open, loops and branches run as if no tensor needed a gradient."""
    # NOTE: read in torch 2.11, 2.13 and 2.15, _ops.py: `py_autograd_impl` registers a kernel there that bypasses autograd by itself where
    # no gradient is needed.
    below = _BELOW.value
    operators = [found for name in _OPERATORS if (found := getattr(torch.ops.higher_order, name, None)) is not None]
    return all_wrapped(
        (slot, _below(below, slot.owner)) for slot in (operator_kernels.slots(operators, "Autograd") if below is not None else ())
    )


def _below(below: Any, operator: Any) -> Any:
    def run(original: Any, *args: Any, **kwargs: Any) -> Any:
        del original
        with below():
            return operator(*args, **kwargs)

    return run
