"""What torch.func leaves in programs: tensors that it wraps, and the operators of a torch.vmap that is still to be traced."""

from __future__ import annotations

import torch

from .symbols import Symbol

_IS_WRAPPED = Symbol(
    "torch._C:_functorch.is_functorch_wrapped_tensor",
    without="a program that lost the argument of a function of torch.func is taken for right",
    otherwise=lambda _: False,
)

PREDISPATCH = "torch._functorch.predispatch::"
"""Where the names of operators begin that stand for a torch.vmap which is still to be traced (torch 2.11 to 2.15)."""


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether `tensor` is a tensor inside of a function of torch.func, which has no data by itself."""
    return bool(_IS_WRAPPED.value(tensor))
