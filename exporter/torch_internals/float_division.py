"""Python's `%` and `//` of floats that are made of sizes, such as `x.shape[0] / 3 % 1`.

torch simplifies a remainder as if it were one of ints, so that `n / 3 % 1` is 0 to it; and `n // 0.1` is `floor(n / 0.1)` to it, which is
not always Python's number. With these, torch decides by formulas that hold for floats, and the graph has Python's operators.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from . import patching, shape_env
from .patching import Slot, all_wrapped
from .symbols import Symbol

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)

# NOTE: read in torch 2.11, 2.13 and 2.15: `SymNode.mod` (fx/experimental/sym_node.py) makes an expression of torch's `Mod` or `PythonMod`,
# whose values are ints (utils/_sympy/functions.py). While torch records a graph, `handle_sym_dispatch` records an operator and calls it
# again (fx/experimental/proxy_tensor.py).
_REMAINDER = Symbol(
    "torch.fx.experimental.sym_node:SymNode.mod", without="a branch on a remainder of a float that is made of a size may silently go wrong"
)
_WITHOUT = "a quotient of floats that is made of a size and rounded down may differ from Python's"
_RECORDING = Symbol("torch.fx.experimental.proxy_tensor:get_proxy_mode", without=_WITHOUT)
_RECORD = Symbol("torch.fx.experimental.proxy_tensor:handle_sym_dispatch", without=_WITHOUT)


def of_python() -> contextlib.AbstractContextManager[None]:
    """While it is open, these operators give what Python gives."""
    if not all(each.is_present for each in (_REMAINDER, _RECORDING, _RECORD)):
        return contextlib.nullcontext()

    from torch.fx.experimental.sym_node import SymNode

    quotients = [(Slot(number, "__floordiv__"), _quotient) for number in (torch.SymInt, torch.SymFloat)]
    reflected = [(Slot(number, "__rfloordiv__"), _reflected_quotient) for number in (torch.SymInt, torch.SymFloat)]
    return all_wrapped([(Slot(SymNode, _REMAINDER.name), _remainder), *quotients, *reflected])


def _remainder(original: Callable[..., Any], node: Any, other: Any) -> Any:
    if float not in (node.pytype, other.pytype) or _RECORDING.value() is not None:
        return original(node, other)
    dividend, divisor = (torch.SymFloat(each if each.pytype is float else each.sym_float()) for each in (node, other))
    return (dividend - torch.sym_float(math.floor(dividend / divisor)) * divisor).node


def _quotient(original: Callable[..., Any], number: Any, other: Any) -> Any:
    recorded = _RECORDING.value() is not None and _is_float(number, other)
    return _RECORD.value(operator.floordiv, (number, other), {}) if recorded else original(number, other)


def _reflected_quotient(original: Callable[..., Any], number: Any, other: Any) -> Any:
    recorded = _RECORDING.value() is not None and _is_float(number, other)
    return _RECORD.value(operator.floordiv, (other, number), {}) if recorded else original(number, other)


def _is_float(*numbers: object) -> bool:
    """Whether all are numbers, and one of them is a float."""
    floats = float | torch.SymFloat
    return any(isinstance(each, floats) for each in numbers) and all(isinstance(each, floats | int | torch.SymInt) for each in numbers)
