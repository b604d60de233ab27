"""The traces of torch.func in programs: tensors that it wraps, and the operators of a torch.vmap that has not been traced yet."""

from __future__ import annotations

import torch

from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, _C/_functorch.pyi, _functorch/predispatch.py and _functorch/vmap.py.
_IS_WRAPPED = Symbol(
    "torch._C:_functorch.is_functorch_wrapped_tensor",
    without="a model that uses torch.func may fail as if that were a bug of onnxplain",
    otherwise=lambda _: False,
)

Symbol("torch._functorch.predispatch:_add_batch_dim", without="a program with a torch.vmap has the wrong shapes")
PREDISPATCH = "torch._functorch.predispatch::"
"""The prefix of the names of operators that stand for a torch.vmap that has not been traced yet."""


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether `tensor` is a wrapped tensor within a function of torch.func. It has no data itself."""
    return bool(_IS_WRAPPED.value(tensor))
