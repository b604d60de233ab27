"""Joins two factors before a matrix product.

ONNX Runtime moves both behind the product, also from before a transposition. It removes the first one where another operator still reads
its result, and then refuses the model (seen in 1.31).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import small_constant

_BEFORE = ("MatMul", "Transpose")


def join_factors(model: ir.Model) -> None:
    """Lets a Mul or Div by a number before a MatMul start from the value before another Mul or Div by a number that others read as well."""
    for node in list(model.graph.all_nodes()):
        scaled = _scaled(node)
        if scaled is None or node.graph is None or not any(user.op_type in _BEFORE for user, _ in node.outputs[0].uses()):
            continue
        inner, outer = scaled
        producer = inner.producer()
        before = None if producer is None or producer.graph is not node.graph or len(inner.uses()) < 2 else _scaled(producer)
        if before is None:
            continue
        value, first = before
        factor = ir.Value(name=f"{node.outputs[0].name}_factor", const_value=ir.tensor(first * outer))
        factor.type, factor.shape = inner.type, ir.Shape(())
        node.graph.register_initializer(factor)
        node.op_type = "Mul"
        node.replace_input_with(0, value)
        node.replace_input_with(1, factor)


def _scaled(node: ir.Node) -> tuple[ir.Value, Any] | None:
    """The value that a node multiplies by a floating-point number, and that number; None if it does anything else."""
    if node.domain or node.op_type not in ("Mul", "Div"):
        return None
    pairs = [(node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])]
    for value, other in pairs[: 2 if node.op_type == "Mul" else 1]:
        number = None if other is None else small_constant(other)
        if value is None or number is None or number.size != 1 or number.ndim > 0 or not np.issubdtype(number.dtype, np.floating):
            continue
        (single,) = number.reshape(1)
        return value, single if node.op_type == "Mul" else 1 / single
    return None
