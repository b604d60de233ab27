"""Python's `max` and `min` of sizes: torch.export keeps two of them symbolic, and compares more of them, or fractions, as numbers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .patching import Slot, wrapped
from .symbolic_expressions import bounds_by_remainder, expression_of
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15: while torch.export captures without TorchDynamo, this function replaces both.
_MIN_MAX = Symbol(
    "torch._export.non_strict_utils:_tensor_min_max",
    without="`max` and `min` of three or more sizes, or of fractions of them, choose one of them during the capture",
    names=("real_callable", "tensor_callable"),
)


@contextmanager
def of_several_sizes() -> Iterator[None]:
    """While it is open, `max` and `min` of several numbers stay symbolic if one of them is."""
    if not _MIN_MAX.is_present:
        yield
        return

    def min_max(original: Callable[..., Any], *args: Any, real_callable: Any, tensor_callable: Any, **kwargs: Any) -> Any:
        numbers = all(isinstance(each, int | float | torch.SymInt | torch.SymFloat) for each in args)
        if kwargs or len(args) < 2 or not numbers or not any(isinstance(each, torch.SymInt | torch.SymFloat) for each in args):
            return original(*args, real_callable=real_callable, tensor_callable=tensor_callable, **kwargs)
        known = _without_zero(args) if tensor_callable is torch.maximum else args
        return functools.reduce(torch.sym_max if tensor_callable is torch.maximum else torch.sym_min, known)

    with wrapped(Slot(sys.modules["torch._export.non_strict_utils"], _MIN_MAX.name), min_max):
        yield


def _without_zero(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of a number that cannot be negative and 0, the number; of one that cannot be positive and 0, 0. Others as they are.

    It is the padding that brings a size to a multiple; torch does not know its range.
    """
    if len(numbers) == 2 and any(type(each) is int and each == 0 for each in numbers):
        for each in numbers:
            bounds = bounds_by_remainder(expression_of(each)) if isinstance(each, torch.SymInt) else None
            if bounds is not None and (bounds[0] >= 0 or bounds[1] <= 0):
                return (each if bounds[0] >= 0 else 0,)
    return numbers
