"""The strides of a tensor, which ONNX does not have: they are products of its sizes."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .graphs import arguments

OPERATORS = frozenset({torch.ops.aten.sym_stride.int})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition of a symbolic stride that is a product of sizes; None for other nodes."""
    if node.target not in OPERATORS:
        return None
    given = arguments(node)
    value = given["self"].meta["val"]
    dims = _dims(value, str(value.stride(given["dim"])))
    return None if dims is None else functools.partial(_product, dims)


def _dims(value: Tensor, stride: str) -> Sequence[int] | None:
    """The dims whose sizes have the product `stride`: the last ones, where the tensor is in order in memory."""
    sets = (dims for count in range(1, value.ndim + 1) for dims in itertools.combinations(reversed(range(value.ndim)), count))
    return next((dims for dims in sets if str(math.prod(value.shape[dim] for dim in dims)) == stride), None)


def _product(dims: Sequence[int], self: Tensor, dim: int) -> Any:
    del dim
    return math.prod(self.shape[each] for each in dims)
