"""Operators as objects: their classes, which have no public name, and their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .symbols import Symbol

if TYPE_CHECKING:
    from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
else:
    # NOTE: read in torch 2.11, 2.13 and 2.15, _ops.py: the classes of public objects.
    OpOverload = type(torch.ops.aten.add.Tensor)
    OpOverloadPacket = type(torch.ops.aten.add)
    HigherOrderOperator = next(each for each in type(torch.ops.higher_order.cond).__mro__ if each.__name__ == "HigherOrderOperator")

__all__ = ["SQUEEZES", "TO_COPY", "HigherOrderOperator", "OpOverload", "OpOverloadPacket", "failed", "is_composite", "overloads", "schema"]

SQUEEZES = frozenset({torch.ops.aten.squeeze.default, torch.ops.aten.squeeze.dim, torch.ops.aten.squeeze.dims})
"""The operators that drop dims of size 1."""
TO_COPY = torch.ops.aten._to_copy.default
"""The operators of `Tensor.to` for another dtype."""

_COMPOSITE = Symbol(
    "torch._C:DispatchKey.CompositeImplicitAutograd",
    without="operators that write to their arguments may seem to share memory with more values than they do",
)


def schema(operator: OpOverload) -> Any:
    """The schema of `operator`: `name` without the overload, `overload_name`, `arguments`, `returns`, `is_mutable`."""
    return operator._schema


def overloads(name: str) -> list[OpOverload]:
    """The overloads of ATen's operator `name`, those of TorchScript included; none if ATen has no such operator."""
    packet = getattr(torch.ops.aten, name, None)
    return [getattr(packet, each) for each in packet.overloads()] if isinstance(packet, OpOverloadPacket) else []


def is_composite(operator: OpOverload) -> bool:
    """Whether torch composes `operator` of other operators, including its gradient. True if that is not known."""
    key = _COMPOSITE.value
    return key is None or bool(operator.has_kernel_for_dispatch_key(key))


def failed(node: torch.fx.Node) -> bool:
    """Whether the operator of `node` raised an exception during the capture, which the model caught: it has no result."""
    returns = isinstance(node.target, OpOverload) and bool(schema(node.target).returns)
    return returns and not node.users and node.meta.get("val") is None
