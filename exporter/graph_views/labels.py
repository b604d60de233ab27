"""How a graph shows an FX node: its operator, and the dtype and shape of its value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from onnxplain.diagnostics import LEFT_OUT
from onnxplain.request import DimNames
from onnxplain.torch_internals.operators import OpOverload
from onnxplain.torch_internals.symbolic_expressions import expression_of

_VALUE_LIMIT = 3
"""How many values of a list are shown."""


def label_of(node: torch.fx.Node) -> str:
    """The operator of a node, or its part in the graph."""
    if node.op != "call_function":
        return {"placeholder": "input", "get_attr": "constant"}.get(node.op, node.op)
    target = node.target
    return str(target) if isinstance(target, OpOverload) else getattr(target, "__name__", str(target))


def value_of(value: Any, dim_names: DimNames) -> str:
    """The dtype and shape of a fake value, or of the first few in a list; an empty text for other values."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(str(dim_names.of(size)) for size in value.shape)}]"
    if isinstance(value, list | tuple):
        return _joined((value_of(each, dim_names) for each in value[:_VALUE_LIMIT]), more=len(value) > _VALUE_LIMIT)
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return dim_names.text(expression_of(value))
    return ""


def _joined(texts: Iterable[str], *, more: bool) -> str:
    return ", ".join([*filter(None, texts), *([LEFT_OUT] if more else [])])
