"""What torch keeps in the entries of `dynamic_shapes`: the kind and range of a hint, and the dim that another one is computed from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.export import Dim

from .symbols import Attribute

# NOTE: read in torch 2.11, 2.13 and 2.15, export/dynamic_shapes.py: the classes of what public names such as `Dim.AUTO` and `2 * dim` give.
_HINT = "torch.export.dynamic_shapes:_DimHint"
_KIND = Attribute(f"{_HINT}.type", without="hints with a range, such as Dim.DYNAMIC(min=2), count as static dims")
_LEAST = Attribute(f"{_HINT}.min", without="ranges of hints are not checked")
_MOST = Attribute(f"{_HINT}.max", without=_LEAST.without)
_ROOT = Attribute("torch.export.dynamic_shapes:_DerivedDim.root", without="names of dims that are computed from others may be torch's")
_FUNCTION = Attribute("torch.export.dynamic_shapes:_DerivedDim.fn", without=_ROOT.without, otherwise=lambda _: None)

Hint: Any = type(Dim.AUTO)
"""The class of `Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC`, with or without a range."""


def is_like(hint: object, other: object) -> bool:
    """Whether two hints are of one kind, whatever their ranges."""
    return hint == other or (_KIND.is_present and bool(_KIND.of(hint) == _KIND.of(other)))


def limits(hint: object) -> tuple[int | None, int | None]:
    """The least and the largest size that a hint allows; None where it has no limit."""
    # NOTE: torch's infinity is not an int.
    least, most = (bound if isinstance(bound, int) else None for bound in (_LEAST.of(hint), _MOST.of(hint)))
    return least, most


def root(dim: Dim) -> Dim | None:
    """The dim that `dim` is computed from, such as `half` for `2 * half`; None if there is none."""
    found: Dim | None = _ROOT.of(dim)
    return found


def from_root(dim: Dim) -> Callable[[int], Any]:
    """How the size of `dim` follows from that of its root."""
    found: Callable[[int], Any] = _FUNCTION.of(dim)
    return found
