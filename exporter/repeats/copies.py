"""Nodes and values that are copies. Their `meta` is made when somebody asks for it: few do, and a deep model has thousands of them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from onnxplain.source import locations


class _Copy:
    """What makes `meta` late.

    Attributes:
        operator: The operator that `meta` will name; None once it does, or if there is none.
    """

    __slots__ = ()
    operator: torch.fx.Node | None

    @property
    def meta(self) -> Any:
        made, operator = super().meta, self.operator  # type: ignore[misc]  # the class beside this one has it
        if operator is not None:
            made[locations.FX_NODE] = operator
            self.operator = None  # type: ignore[misc]  # its subclasses have the slot
        return made


class CopiedNode(_Copy, ir.Node):  # type: ignore[override]  # the protocol of onnx_ir has an attribute `meta`
    """A copy of a node."""

    __slots__ = ("operator",)


class CopiedValue(_Copy, ir.Value):  # type: ignore[override]  # as above
    """A copy of a value."""

    __slots__ = ("operator",)
