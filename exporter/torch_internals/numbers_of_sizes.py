"""Numbers that code computes of sizes by way of small tensors, such as `torch.div(x.shape[1], 2).item()`.

torch gives `.item()` an unknown value there, at which Python code cannot branch. The graph so far tells how the tensor was computed, so the
same is computed with symbolic sizes, which stay dynamic.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import shape_env
from .operators import OpOverload, OpOverloadPacket, schema

shape_env.leave_out(__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15: the operators of the graphs that torch.export records, and their arguments.
# NOTE: torch 2.11 makes a plain number of a size that a tensor holds where code slices with it, and takes an unknown number as it is.
_NUMBERS = (torch.SymBool, *((torch.SymInt, torch.SymFloat) if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13) else ()))
"""The numbers that are made for Python."""
_LARGEST = 64
"""The most elements of a tensor with sizes."""

_ATEN = torch.ops.aten
_Array = np.ndarray[Any, np.dtype[np.object_]]


class _Unknown(Exception):
    """More than sizes decides the number, or its computation is not known here."""


def number(node: torch.fx.Node, known: Callable[[torch.fx.Node], torch.Tensor | None]) -> Any:
    """The only element of a tensor as a number or a symbolic number; None if it does not only come from sizes.

    Args:
        node: The tensor's node in the graph that is being recorded.
        known: The data of the node of a constant; None for others.
    """
    found = _elements(node, known)
    (element,) = found if len(found) == 1 else (None,)
    # NOTE: what has no size in it is a matter of constants.
    return element if isinstance(element, _NUMBERS) else None


def total(node: torch.fx.Node, known: Callable[[torch.fx.Node], torch.Tensor | None]) -> torch.SymInt | None:
    """The sum of a tensor of sizes; None if other things decide its elements, or no size does. The arguments are those of `number`."""
    found = sum(_elements(node, known))
    return found if isinstance(found, torch.SymInt) else None


def _elements(node: torch.fx.Node, known: Callable[[torch.fx.Node], torch.Tensor | None]) -> list[Any]:
    """The elements of a tensor; none if not all are known."""
    try:
        return list(_Numbers(known).of(node).reshape(-1).tolist())
    except Exception:  # noqa: BLE001  the operators of a user's model, on symbols that torch may refuse anywhere
        return []


class _Numbers:
    """Computes arrays of symbolic numbers.

    Args:
        known: The data of the node of a constant.
    """

    def __init__(self, known: Callable[[torch.fx.Node], torch.Tensor | None]) -> None:
        self._known = known

    @functools.cache  # noqa: B019  it lives for one question
    def of(self, node: torch.fx.Node) -> _Array:
        """The elements of a tensor, in its shape; a size is an array without dims."""
        value = node.meta.get("val")
        if isinstance(value, int | float | torch.SymInt | torch.SymFloat):
            return _array(value)
        if not isinstance(value, torch.Tensor) or any(not isinstance(size, int) for size in value.shape) or value.numel() > _LARGEST:
            raise _Unknown
        if _is_written(node):
            raise _Unknown
        if (data := self._known(node)) is not None:
            return np.array(data.tolist(), dtype=object).reshape(tuple(data.shape))
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            raise _Unknown
        if node.target.overloadpacket in _OF_EQUALS and len(node.args) == 1 and (filled := _filled(node.args[0])) is not None:
            return _converted(self.of(filled) if isinstance(filled, torch.fx.Node) else _array(filled), value.dtype)
        compute = _COMPUTED.get(node.target.overloadpacket)
        if compute is None:
            raise _Unknown
        names = [each.name for each in schema(node.target).arguments]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        result = compute(**{name: self._argument(each) for name, each in given.items() if name not in _OF_NO_MATTER})
        return _converted(result, value.dtype).reshape(tuple(value.shape))

    def _argument(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._argument(each) for each in given]
        return self.of(given) if isinstance(given, torch.fx.Node) else given


def _filled(node: Any) -> Any:
    """The number, or the node of one, that all elements of a tensor are; None if that is not known."""
    if not isinstance(node, torch.fx.Node) or not isinstance(node.target, OpOverload) or _is_written(node):
        return None
    packet = node.target.overloadpacket
    if packet in _SAME or packet is _ATEN.expand:
        return _filled(node.args[0])
    return node.args[1] if packet in _FULL else None


def _array(value: Any) -> _Array:
    made = np.empty((), dtype=object)
    made[()] = value
    return made


def _is_written(node: torch.fx.Node) -> bool:
    """Whether an operator so far writes to a tensor, or to a view of it."""
    targets = [(user, user.target) for user in node.users if isinstance(user.target, OpOverload)]
    return any(
        (schema(target).is_mutable and target.overloadpacket is not _ATEN.detach_)
        or (target.overloadpacket in _SAME and _is_written(user))
        or (target.overloadpacket is _ATEN.select and _is_written(user))
        for user, target in targets
    )


def _converted(values: _Array, dtype: torch.dtype) -> _Array:
    if dtype == torch.bool:
        return _each(lambda each: each if isinstance(each, bool | torch.SymBool) else each != 0)(values)
    plain = _each(lambda each: torch.sym_ite(each, 1, 0) if isinstance(each, torch.SymBool) else each)(values)
    if dtype.is_floating_point:
        return _each(torch.sym_float)(plain)
    if dtype.is_complex:
        raise _Unknown
    return _each(lambda each: math.trunc(each) if isinstance(each, float | torch.SymFloat) else each)(plain)


def _each(function: Callable[..., Any], count: int = 1) -> Callable[..., _Array]:
    """`function` for the elements of `count` arrays."""
    apply = np.frompyfunc(function, count, 1)

    def call(*arrays: Any) -> _Array:
        made: Any = apply(*arrays)
        return made if isinstance(made, np.ndarray) else _array(made)

    return call


def _quotient(dividend: Any, divisor: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return dividend / divisor
    if rounding_mode == "floor" or (shape_env.is_true(dividend >= 0) and shape_env.is_true(divisor > 0)):
        return dividend // divisor
    return math.trunc(dividend / divisor)


def _differ(one: Any, other: Any) -> Any:
    # NOTE: a test of a tensor asks whether it differs from 0, and a SymBool differs from all numbers.
    if isinstance(one, torch.SymBool):
        return one if isinstance(other, int) and other == 0 else torch.sym_ite(one, 1, 0) != other
    return one != other


_ADD, _SUB, _MUL = (_each(function, 2) for function in (operator.add, operator.sub, operator.mul))
_LEAST, _MOST = _each(torch.sym_min, 2), _each(torch.sym_max, 2)


def _divided(self: Any, other: Any, rounding_mode: str | None = None) -> _Array:
    return _each(functools.partial(_quotient, rounding_mode=rounding_mode), 2)(self, other)


def _clamped(self: Any, min: Any = None, max: Any = None) -> _Array:
    above = self if min is None else _MOST(self, min)
    return above if max is None else _LEAST(above, max)


def _product(self: _Array) -> _Array:
    return _reduced(operator.mul, self, 1)


def _sum(self: _Array) -> _Array:
    return _reduced(operator.add, self, 0)


def _reduced(function: Callable[[Any, Any], Any], self: _Array, *first: int) -> _Array:
    return _array(functools.reduce(function, self.reshape(-1).tolist(), *first))


_OF_NO_MATTER = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "copy"})
"""The arguments that change no number, or only its dtype, which is that of the result."""
_SAME = frozenset(
    {_ATEN.to, _ATEN._to_copy, _ATEN.clone, _ATEN.contiguous, _ATEN.detach, _ATEN.detach_, _ATEN.lift_fresh_copy, _ATEN.alias}
    | {_ATEN.view, _ATEN.reshape, _ATEN.squeeze, _ATEN.unsqueeze}
)
"""The operators whose results have the elements of the first argument, in order."""
_FULL = frozenset({_ATEN.full, _ATEN.full_like})
"""The operators whose results have one number everywhere, which is the second argument."""
_OF_EQUALS = frozenset({_ATEN.max, _ATEN.min, _ATEN.amax, _ATEN.amin})
"""The operators whose results are the element itself where all elements are equal."""
_OF_TWO: dict[OpOverloadPacket, Callable[[Any, Any], Any]] = {
    _ATEN.floor_divide: operator.floordiv,
    _ATEN.remainder: operator.mod,
    _ATEN.eq: lambda one, other: torch.sym_not(_differ(one, other)),
    _ATEN.ne: lambda one, other: _differ(one, other),
    _ATEN.lt: operator.lt,
    _ATEN.le: operator.le,
    _ATEN.gt: operator.gt,
    _ATEN.ge: operator.ge,
}


def _of_two(function: Callable[[Any, Any], Any]) -> Callable[..., _Array]:
    apply = _each(function, 2)
    return lambda self, other: apply(self, other)


_COMPUTED: dict[OpOverloadPacket, Callable[..., _Array]] = {
    **{packet: lambda self, **_: self for packet in _SAME},
    **{packet: _of_two(function) for packet, function in _OF_TWO.items()},
    _ATEN.scalar_tensor: lambda s: s,
    _ATEN.add: lambda self, other, alpha=1: _ADD(self, _MUL(other, alpha)),
    _ATEN.sub: lambda self, other, alpha=1: _SUB(self, _MUL(other, alpha)),
    _ATEN.rsub: lambda self, other, alpha=1: _SUB(other, _MUL(self, alpha)),
    _ATEN.mul: lambda self, other: _MUL(self, other),
    _ATEN.div: _divided,
    _ATEN.neg: lambda self: _each(operator.neg)(self),
    _ATEN.ceil: lambda self: _each(math.ceil)(self),
    _ATEN.floor: lambda self: _each(math.floor)(self),
    _ATEN.trunc: lambda self: _each(math.trunc)(self),
    _ATEN.minimum: lambda self, other: _LEAST(self, other),
    _ATEN.maximum: lambda self, other: _MOST(self, other),
    _ATEN.clamp: _clamped,
    _ATEN.clamp_min: lambda self, min: _clamped(self, min=min),
    _ATEN.clamp_max: lambda self, max: _clamped(self, max=max),
    _ATEN.max: lambda self: _reduced(torch.sym_max, self),
    _ATEN.min: lambda self: _reduced(torch.sym_min, self),
    _ATEN.prod: _product,
    _ATEN.sum: _sum,
    _ATEN.stack: lambda tensors, dim=0: np.stack(tensors, dim),
    _ATEN.cat: lambda tensors, dim=0: np.concatenate(tensors, dim),
    _ATEN.select: lambda self, dim, index: np.take(self, [index], dim),
}
"""What operators compute, by the names of their arguments. The shape and the dtype of the result come from the graph."""
