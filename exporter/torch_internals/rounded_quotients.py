"""What brings a size to a multiple: `math.ceil(n / 2)`, and the padding `-n % 2` or `(2 - n % 2) % 2`.

torch keeps a fraction that is rounded up, and remainders, and cannot simplify the size of what is padded: its formula would be three times
as long after each convolution of a network. It can where all is said by quotients of ints that are rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from . import patching, shape_env
from .patching import Slot, all_wrapped

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)

_PARTS = "_onnxplain_parts"
"""The attribute of a quotient or a remainder that holds the size and the number by which it was divided."""
_LACKING = "_onnxplain_lacking"
"""The same, of a multiple of that number less the remainder."""


def of_ints() -> AbstractContextManager[None]:
    """While it is open, a quotient of a size that is rounded at once is one of ints, and so is what a size lacks to a multiple."""
    return all_wrapped(
        [
            (Slot(torch.SymInt, "__truediv__"), _divided),
            (Slot(torch.SymFloat, "__ceil__"), _rounded_up),
            (Slot(torch.SymFloat, "__floor__"), _rounded_down),
            (Slot(torch.SymInt, "__neg__"), _negated),
            (Slot(torch.SymInt, "__rsub__"), _subtracted),
            (Slot(torch.SymInt, "__mod__"), _remainder),
        ]
    )


def _divided(original: Callable[[Any, Any], Any], size: Any, divisor: Any) -> Any:
    fraction = original(size, divisor)
    # NOTE: Python's own quotient is exact enough to be rounded where the size is less than 2**53.
    if type(divisor) is int and divisor > 0 and type(fraction) is torch.SymFloat:
        setattr(fraction, _PARTS, (size, divisor))
    return fraction


def _rounded_up(original: Callable[[Any], Any], fraction: Any) -> Any:
    parts = getattr(fraction, _PARTS, None)
    return original(fraction) if parts is None else -(-parts[0] // parts[1])


def _rounded_down(original: Callable[[Any], Any], fraction: Any) -> Any:
    parts = getattr(fraction, _PARTS, None)
    return original(fraction) if parts is None else parts[0] // parts[1]


def _negated(original: Callable[[Any], Any], size: Any) -> Any:
    negative = original(size)
    if isinstance(negative, torch.SymInt):
        setattr(negative, _LACKING, (size, None))
    return negative


def _subtracted(original: Callable[[Any, Any], Any], remainder: Any, number: Any) -> Any:
    difference, parts = original(remainder, number), getattr(remainder, _PARTS, None)
    if parts is not None and type(number) is int and number % parts[1] == 0:
        setattr(difference, _LACKING, parts)
    return difference


def _remainder(original: Callable[[Any, Any], Any], size: Any, divisor: Any) -> Any:
    if type(divisor) is not int or divisor <= 0:
        return original(size, divisor)
    whole, by = getattr(size, _LACKING, (None, None))
    if whole is not None and by in (None, divisor):
        return divisor * -(-whole // divisor) - whole
    remainder = original(size, divisor)
    if isinstance(remainder, torch.SymInt):
        setattr(remainder, _PARTS, (size, divisor))
    return remainder
