"""Functions of Python and numpy whose arguments must be numbers, called with sizes: the calls would fail, or fix the sizes.

While a capture runs, they are made of functions of torch, which take sizes.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import patching, shape_env
from .patching import Slot, all_wrapped
from .symbolic_expressions import expression_of

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)


def kept() -> contextlib.AbstractContextManager[None]:
    """While it is open, these functions take sizes."""
    others = ((slot, functools.partial(_of_sizes, function)) for slot, function in _replacements())
    return all_wrapped([*others, (Slot(torch.SymInt, "__rpow__"), _power)])


def _replacements() -> Iterator[tuple[Slot, Callable[..., Any]]]:
    yield Slot(builtins, "divmod"), _quotient_and_rest
    for name, function in {"sqrt": _sqrt, "log": _log, "log2": _log2, "log10": _log10}.items():
        yield Slot(math, name), function
    for name, function in {"sqrt": _sqrt, "log": _log, "log2": _log2, "ceil": _ceil, "floor": _floor}.items():
        yield Slot(np, name), function
    yield Slot(np, "prod"), _product
    yield Slot(torch.SymInt, "__round__"), _round
    # NOTE: torch rounds a product of sizes as if it were no integer, and then fails to write it into its checks (read in torch 2.13).
    for name in ("__floor__", "__ceil__", "__trunc__"):
        yield Slot(torch.SymInt, name), lambda size: size


def _of_sizes(function: Callable[..., Any], original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `function` if an argument is a size, or a list that has one; otherwise the original."""
    parts = [part for each in args for part in (each if isinstance(each, list | tuple) else (each,))]
    if kwargs or not any(isinstance(each, torch.SymInt | torch.SymFloat) for each in parts):
        return original(*args, **kwargs)
    return function(*args)


def _quotient_and_rest(a: Any, b: Any) -> Any:
    return a // b, a % b


def _round(size: Any, digits: int | None = None) -> Any:
    # NOTE: torch returns the size whatever the digits (read in torch 2.11, 2.13 and 2.15).
    if digits is None or digits >= 0:
        return size
    unit = 10**-digits
    rest = size % unit
    low = size - rest
    # NOTE: of two numbers that are as near, Python takes the one with the even digit.
    return torch.sym_ite(2 * rest + (low // unit) % 2 > unit, low + unit, low)


def _power(original: Callable[..., Any], exponent: Any, base: Any) -> Any:
    """A power whose exponent is a rounded logarithm, as in `2 ** ceil(log2(n))`. torch has powers with other symbolic exponents only."""
    expression = expression_of(exponent)
    if type(base) is not int or base < 1 or expression.is_Add or expression.is_Mul or exponent.node.has_hint():
        return original(exponent, base)
    torch._check(exponent >= 0)
    power = torch.pow(torch.scalar_tensor(base, dtype=torch.int64), torch.scalar_tensor(exponent, dtype=torch.int64)).item()
    torch._check(power >= 1)
    return power


def _sqrt(value: Any) -> Any:
    return value**0.5


def _log(value: Any, base: float = math.e) -> Any:
    # NOTE: torch.export has no logarithm of symbolic numbers. The number that a tensor holds is one without an example.
    return torch.scalar_tensor(value, dtype=torch.float64).log().item() / math.log(base)


def _log2(value: Any) -> Any:
    return _log_exact_for_powers(value, 2)


def _log10(value: Any) -> Any:
    return _log_exact_for_powers(value, 10)


def _log_exact_for_powers(value: Any, base: int) -> Any:
    number = torch.scalar_tensor(value, dtype=torch.float64)
    log = number.log() / math.log(base)
    # NOTE: the quotient for 1000 is less than 3, unlike math.log10(1000).
    whole = log.round()
    return torch.where(base**whole == number, whole, log).item()


def _ceil(value: Any) -> Any:
    return torch.sym_float(math.ceil(value))


def _floor(value: Any) -> Any:
    return torch.sym_float(math.floor(value))


def _product(values: Any) -> Any:
    return math.prod(values)
