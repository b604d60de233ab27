"""What operators are made of, as torch knows it, and graphs of what a function calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

# NOTE: read in torch 2.11, 2.13 and 2.15; `torch.fx.experimental` has no public twin, and torch.export traces with it as well.
from torch.fx.experimental.proxy_tensor import make_fx

from .operators import OpOverload
from .symbols import Symbol

__all__ = ["Decompositions", "decomposition_of", "known_decompositions", "make_fx"]

_TABLE = Symbol(
    "torch._decomp:decomposition_table",
    without="operators that only eager mode knows how to decompose have no translation",
    otherwise={},
)

Decompositions = Mapping[OpOverload, Callable[..., Any]]


def known_decompositions() -> Decompositions:
    """What torch knows.

    NOTE: core ATen's table lacks what eager never decomposes but ONNX does not have, and users register decompositions of their own at any
    time. `default_decompositions` is the public part.
    """
    # NOTE: this loads what adds to the whole table, so it comes first.
    public = torch.export.default_decompositions()
    table = {**_TABLE.value, **public}
    return {target: function for target, function in table.items() if isinstance(target, OpOverload)}


def decomposition_of(operator: OpOverload) -> Callable[..., Any] | None:
    """How an operator that torch makes of others decomposes by itself; None if it does not."""
    can = getattr(operator, "_can_decompose", None)
    return operator.decompose if can is not None and can() else None
