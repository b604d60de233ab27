"""Parts of an exported model in ONNX's reference evaluator: as they are, and in float64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import torch

from .calls import widened
from .parts import Part
from .reference import run_reference

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
_LIMIT = 2**22
_LOOP_LIMIT = 2**16
"""The most elements of an input of ONNX's reference evaluator, of operators that NumPy computes and of those with loops in Python."""
_LOOPS = frozenset(
    {
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "Einsum",
        "GRU",
        "GridSample",
        "LSTM",
        "Loop",
        "LpPool",
        "MaxPool",
        "RNN",
    }
    | {"Resize", "RoiAlign", "Scan", "ScatterElements", "ScatterND", "TopK", "Unique"}
)


def by_reference(part: Part, model: ir.Model, values: Mapping[ir.Value, torch.Tensor]) -> list[torch.Tensor] | None:
    """The outputs of a part by ONNX's reference evaluator; None if it cannot compute them, or takes too long."""
    if not _is_quick(part, values):
        return None
    try:
        return run_reference(ir.to_proto(part.model(model, values)), [values[each] for each in part.inputs])
    except Exception:  # noqa: BLE001  the evaluator lacks operators and dtypes, and fails with any exception
        return None


def in_double(part: Part, model: ir.Model, values: Mapping[ir.Value, torch.Tensor], *, integers: bool) -> list[torch.Tensor] | None:
    """Every value that a part computes, the output last, with float64 in place of all floating dtypes; None if that is not possible.

    Args:
        part: The part.
        model: The whole model.
        values: The values of the part's inputs.
        integers: Whether float64 also takes the place of integers that are inputs and no positions or sizes.
    """
    if not _is_quick(part, values):
        return None
    try:
        wide = part.model(model, values)
        for node in wide.graph.all_nodes():
            to = node.attributes.get("to")
            if node.op_type == "Cast" and to is not None and (to.as_int() in _FLOATS or (integers and not _makes_positions(node))):
                node.attributes["to"] = ir.AttrInt64("to", ir.DataType.DOUBLE)
        inputs = [values[each] for each in part.inputs]
        inputs = [widened(each) if each.is_floating_point() or not integers else each.double() for each in inputs]
        for value in wide.graph.initializers.values():
            if value.const_value is not None and value.dtype in _FLOATS:
                value.const_value = ir.tensor(value.const_value.numpy().astype(np.float64), name=value.name)
                value.type = ir.TensorType(ir.DataType.DOUBLE)
        for value, given in zip(wide.graph.inputs, inputs, strict=True):
            if given.dtype is torch.float64:
                # NOTE: not `value.dtype = ...`, which changes the type that the value shares with the one that it is a clone of.
                value.type = ir.TensorType(ir.DataType.DOUBLE)
        inner = [value for node in wide.graph for value in node.outputs if value not in wide.graph.outputs and value.name]
        wide.graph.outputs[:0] = inner
        return run_reference(ir.to_proto(wide), inputs)
    except Exception:  # noqa: BLE001  operators refuse float64 in place of other dtypes with any exception
        return None


def _makes_positions(node: ir.Node) -> bool:
    """Whether an operator uses the result of a cast as positions or sizes."""
    return any(use.idx and use.node.op_type in ("Gather", "GatherND", "Reshape", "Expand", "Slice") for use in node.outputs[0].uses())


def _is_quick(part: Part, values: Mapping[ir.Value, torch.Tensor]) -> bool:
    types = {node.op_type for node in part.nodes}
    limit = _LOOP_LIMIT if types & _LOOPS else _LIMIT
    return all(values[each].numel() <= limit for each in part.inputs)
