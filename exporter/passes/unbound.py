"""The parts of a dynamic dim, one by one: as many as when the program was captured, which a finding tells."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from onnxplain.torch_internals.decompositions import decomposition_of

from .graphs import arguments

OPERATORS = frozenset({torch.ops.aten.chunk.default, torch.ops.aten.unbind.int})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., list[Tensor]] | None:
    """The decomposition of an `unbind` or `chunk` whose dim has a symbolic size; None for other nodes."""
    if node.target not in OPERATORS:
        return None
    given = arguments(node)
    size = given["self"].meta["val"].shape[given["dim"]]
    if not isinstance(size, torch.SymInt):
        return None
    if node.target is torch.ops.aten.chunk.default:
        return decomposition_of(node.target)
    return functools.partial(_selected, len(node.meta["val"]))


def _selected(count: int, self: Tensor, dim: int = 0) -> list[Tensor]:
    return [self.select(dim, index) for index in range(count)]
