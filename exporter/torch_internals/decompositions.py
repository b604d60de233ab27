"""torch's decompositions of operators, and graphs of the operators that a function calls."""

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
    """All decompositions that torch knows.

    NOTE: core ATen's table lacks operators that eager never decomposes but ONNX does not have, and users may register decompositions at
    any time. `default_decompositions` is the public part.
    """
    # NOTE: this loads modules that add to the whole table, so it comes first.
    public = torch.export.default_decompositions()
    table = {**_TABLE.value, **public}
    return {target: function for target, function in table.items() if isinstance(target, OpOverload)}


def decomposition_of(operator: OpOverload) -> Callable[..., Any] | None:
    """The decomposition of an operator that torch composes of others; None if it has none."""
    can = getattr(operator, "_can_decompose", None)
    try:
        return operator.decompose if can is not None and can() else None
    except RuntimeError:
        # NOTE: the dispatcher does not know operators that only TorchScript has, such as aten::size (read in torch 2.13).
        return None
