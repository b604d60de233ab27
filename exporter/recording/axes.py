"""Axes of reductions, counted from the front.

The kernels of ONNX Runtime do not reduce an empty tensor along an axis that is counted from the end (seen in 1.31).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .folding import Inputs, small_constant

_ALIKE = frozenset({"Abs", "Cast", "Concat", "Exp", "IsNaN", "Log", "Neg", "Not", "Sqrt"})
"""Operators whose results have as many dims as their first input."""
_BROADCASTING = frozenset(
    {"Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mul", "Or", "Pow", "Sub", "Where"}
)
_KEEPS = ir.AttrInt64("keepdims", 1)
"""The default of reductions."""


def from_front(name: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Inputs, Mapping[str, Any]]:
    """The inputs and attributes of a reduction of opset 18, with axes counted from the front where the rank of its input is known.

    Those of other operators are returned as given.
    """
    if name in ("ArgMax", "ArgMin") and attributes.get("axis", 0) < 0:
        rank = _rank(inputs[0])
        return list(inputs), {**attributes, "axis": attributes["axis"] % rank} if rank else attributes
    if name.startswith("Reduce") and len(inputs) > 1 and isinstance(inputs[1], ir.Value):
        axes = small_constant(inputs[1])
        rank = None if axes is None or (axes >= 0).all() else _rank(inputs[0])
        if axes is not None and rank:
            return [inputs[0], np.sort(axes % rank)], attributes
    return list(inputs), attributes


def _rank(value: ir.Value | None) -> int | None:
    """The number of dims, also of a value within a translation, whose shape is not known yet."""
    if value is None:
        return None
    if value.shape is not None:
        return len(value.shape)
    node = value.producer()
    if node is None or node.domain:
        return None
    keeps = node.op_type.startswith("Reduce") and node.attributes.get("keepdims", _KEEPS).as_int()
    if node.op_type in _ALIKE or keeps:
        return _rank(node.inputs[0])
    if node.op_type in _BROADCASTING:
        ranks = [_rank(each) for each in node.inputs]
        return None if None in ranks else max(each for each in ranks if each is not None)
    if node.op_type == "Unsqueeze" and (axes := node.inputs[1]) is not None and (array := small_constant(axes)) is not None:
        rank = _rank(node.inputs[0])
        return None if rank is None else rank + array.size
    return None
