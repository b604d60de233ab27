"""Dims that are dynamic and 0 in the example: torch takes a size of an input for positive, and decides `n == 0` by that alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import sympy

from .patching import Slot, wrapped
from .symbols import Attribute, Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/sym_node.py: the node of such a comparison has a constant for its expression, and
# keeps what the example says.
_WITHOUT = "a model that asks whether an empty tensor of the example is empty is silently taken for the model of other tensors"
_ASKED = Symbol("torch.fx.experimental.sym_node:SymNode.guard_bool", without=_WITHOUT)
_SAID = Attribute("torch.fx.experimental.sym_node:SymNode._hint", without=_WITHOUT)


def taken_for_full(observer: Callable[[], None]) -> AbstractContextManager[None]:
    """While it is open, calls `observer` before each decision about sizes that is not the example's, since the example is empty."""
    if not _ASKED.is_present:
        return nullcontext()

    def asked(original: Callable[..., bool], node: Any, *args: Any) -> bool:
        said = _SAID.of(node)
        if isinstance(said, bool) and node.expr in (sympy.true, sympy.false) and said != bool(node.expr):
            observer()
        return original(node, *args)

    from torch.fx.experimental.sym_node import SymNode

    return wrapped(Slot(SymNode, _ASKED.name), asked)
