"""Operators as objects: their classes, which have no public name, and their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .symbols import Attribute, Symbol

if TYPE_CHECKING:
    from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
else:
    # NOTE: read in torch 2.11, 2.13 and 2.15, _ops.py: the classes of public objects, on which torch.export is built, as is `_schema`.
    OpOverload = type(torch.ops.aten.add.Tensor)
    OpOverloadPacket = type(torch.ops.aten.add)
    _COND = type(torch.ops.higher_order.cond)
    HigherOrderOperator = next((each for each in _COND.__mro__ if each.__name__ == "HigherOrderOperator"), _COND)

__all__ = [
    "FFT_C2C",
    "FFT_C2R",
    "FFT_R2C",
    "ITEMS",
    "NEAREST_EXACT",
    "SQUEEZES",
    "TO_COPY",
    "HigherOrderOperator",
    "OpOverload",
    "OpOverloadPacket",
    "failed",
    "is_composite",
    "overloads",
    "schema",
    "written_as",
]

SQUEEZES = frozenset({torch.ops.aten.squeeze.default, torch.ops.aten.squeeze.dim, torch.ops.aten.squeeze.dims})
"""The operators that drop dims of size 1."""
FFT_C2C, FFT_C2R, FFT_R2C = (each.default for each in (torch.ops.aten._fft_c2c, torch.ops.aten._fft_c2r, torch.ops.aten._fft_r2c))
"""The operators of all Fourier transforms, from complex (C) or real (R) numbers to such. The last two are core ATen."""
ITEMS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
"""The operators that make a Python number of a tensor."""
NEAREST_EXACT = tuple(getattr(torch.ops.aten, f"_upsample_nearest_exact{rank}d") for rank in (1, 2, 3))
"""The operators of `interpolate(mode="nearest-exact")`, by the number of dims that they resize less one."""
TO_COPY = torch.ops.aten._to_copy.default
"""The operator of `Tensor.to` for another dtype, one of core ATen."""

_COMPOSITE = Symbol(
    "torch._C:DispatchKey.CompositeImplicitAutograd",
    without="operators that write to their arguments may seem to share memory with more values than they do",
)
_HAS_KERNEL = Symbol("torch._ops:OpOverload.has_kernel_for_dispatch_key", without=_COMPOSITE.without)

# NOTE: read in torch 2.11, 2.13 and 2.15, _library/custom_ops.py.
_WRITTEN_AS = Attribute(
    "torch.library:CustomOpDef._init_fn", without="the script that fails alike may lack an operator of torch.library.custom_op"
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
    known = _COMPOSITE.is_present and _HAS_KERNEL.is_present
    return not known or bool(operator.has_kernel_for_dispatch_key(_COMPOSITE.value))


def written_as(operator: object) -> object:
    """The function that torch.library.custom_op made an operator of; None for other objects."""
    return _WRITTEN_AS.of(operator)


def failed(node: torch.fx.Node) -> bool:
    """Whether the operator of `node` raised an exception during the capture, which the model caught: it has no result."""
    returns = isinstance(node.target, OpOverload) and bool(schema(node.target).returns)
    return returns and not node.users and node.meta.get("val") is None
