"""A case, and the inputs that cases share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

aten = torch.ops.aten

_GENERATOR = torch.Generator().manual_seed(20)


@dataclasses.dataclass(frozen=True)
class Case:
    """A function that is exported and compared with eager PyTorch.

    Attributes:
        function: The function.
        args: The inputs of the export.
        dynamic: Whether every dim that the function does not fix is dynamic; then other sizes are compared as well.
        tolerance: Absolute and relative.
        expects: The ids of the findings above notes.
        since: The first version of torch that can capture the function.
        runtime: The first version of ONNX Runtime that can run the model.
        replaced: Operators of the captured program, and the operators that take their place: torch does not capture these by itself, but
            programs from elsewhere may have them.
    """

    function: Callable[..., Any]
    args: tuple[torch.Tensor, ...]
    dynamic: bool = False
    tolerance: float = 1e-4
    expects: frozenset[str] = frozenset()
    since: str = "2.11"
    runtime: str = "1.20"
    replaced: Mapping[object, object] = dataclasses.field(default_factory=dict)


def static(function: Callable[..., Any], args: tuple[torch.Tensor, ...], **options: Any) -> Case:
    """A case whose sizes are those of the export."""
    return Case(function, args, **options)


def dynamic(function: Callable[..., Any], args: tuple[torch.Tensor, ...], **options: Any) -> Case:
    """A case whose sizes are dynamic."""
    return Case(function, args, dynamic=True, **options)


def randn(*shape: int) -> torch.Tensor:
    """Normally distributed numbers, the same in each run."""
    return torch.randn(shape, generator=_GENERATOR)


def layer(module: nn.Module) -> nn.Module:
    """`module` in evaluation, with positive parameters and statistics that are not those of a new layer."""
    for value in (*module.parameters(), *(each for each in module.buffers() if each.is_floating_point())):
        value.data = torch.rand(value.shape, generator=_GENERATOR) + 0.5
    return module.eval()


X = (randn(3, 8, 6),)
PAIR = (randn(3, 4), randn(3, 4))
IMAGE = (randn(2, 4, 9, 7),)
INTS = (torch.arange(-6, 6).reshape(3, 4), torch.tensor([[3], [-2], [5]]))
BOOLS = (randn(3, 4) > 0, randn(3, 4) > 0)
MIXED = (randn(3, 4), torch.arange(12).reshape(3, 4))
