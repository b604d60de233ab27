"""Nodes and values that are copies. Their `meta` is made when somebody asks for it: few do, and a deep model has thousands of them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from typing_extensions import override

from onnxplain.source import locations


class CopiedNode(ir.Node):
    """A copy of a node.

    Attributes:
        operator: The operator that `meta` will name; None once it does.
    """

    __slots__ = ("operator",)
    operator: torch.fx.Node | None

    @property
    @override
    def meta(self) -> Any:  # type: ignore[override]  # the protocol of onnx_ir has an attribute there
        made, operator = super().meta, self.operator
        if operator is not None:
            made[locations.FX_NODE], self.operator = operator, None
        return made


class CopiedValue(ir.Value):
    """A copy of a value.

    Attributes:
        operator: The operator that `meta` will name; None once it does, or if the value is the result of none.
    """

    __slots__ = ("operator",)
    operator: torch.fx.Node | None

    @property
    @override
    def meta(self) -> Any:  # type: ignore[override]  # the protocol of onnx_ir has an attribute there
        made, operator = super().meta, self.operator
        if operator is not None:
            made[locations.FX_NODE], self.operator = operator, None
        return made
