"""The traces of torch.func in programs: tensors that it wraps, and the operators of a torch.vmap that has not been traced yet."""

from __future__ import annotations

import torch

from .symbols import Symbol

_IS_WRAPPED = Symbol(
    "torch._C:_functorch.is_functorch_wrapped_tensor",
    without="a program that lost the argument of a function of torch.func is not recognized as wrong",
    otherwise=lambda _: False,
)

PREDISPATCH = "torch._functorch.predispatch::"
"""The prefix of the names of operators that stand for a torch.vmap that has not been traced yet (torch 2.11 to 2.15)."""


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether `tensor` is a wrapped tensor within a function of torch.func. It has no data itself."""
    return bool(_IS_WRAPPED.value(tensor))
