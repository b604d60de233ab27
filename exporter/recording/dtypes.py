"""The dtypes of an ONNX operator's inputs and outputs, as its type constraints relate them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from .python_values import TENSORS, python_dtype
from .signatures import Bound, takes_sequence

_NARROW = frozenset({ir.DataType.BFLOAT16, ir.DataType.FLOAT16})


def bound_dtypes(inputs: Bound) -> dict[str, ir.DataType]:
    """The dtype to which the inputs bind each type constraint, by the constraint's name. The first input with a known dtype counts."""
    types: dict[str, ir.DataType] = {}
    for parameter, argument in inputs:
        for value in argument if isinstance(argument, list | tuple) else (argument,):
            if isinstance(value, ir.Value) and value.dtype is not None and not _is_sequence(value):
                types.setdefault(parameter.type_constraint.name, value.dtype)
    return types


def refused(signature: ir.schemas.OpSignature, types: Mapping[str, ir.DataType]) -> dict[str, ir.DataType]:
    """The type constraints that are bound to float16 or bfloat16 although the operator is not defined for it."""
    if _NARROW.isdisjoint(types.values()):
        return {}
    allowed = {parameter.type_constraint.name: parameter.type_constraint.allowed_types for parameter in signature.inputs}
    return {name: dtype for name, dtype in types.items() if dtype in _NARROW and ir.TensorType(dtype) not in allowed[name]}


def constant_dtype(parameter: ir.schemas.Parameter, argument: Any, types: Mapping[str, ir.DataType]) -> ir.DataType:
    """The dtype of a Python constant: that of the inputs with the same type constraint; else the only one allowed; else Python's own."""
    bound = types.get(parameter.type_constraint.name)
    if bound is not None:
        return bound
    allowed = parameter.type_constraint.allowed_types
    if len(allowed) == 1:
        return next(iter(allowed)).dtype
    if isinstance(argument, TENSORS):
        return argument.dtype
    return python_dtype(argument)


def infer_output_dtypes(signature: ir.schemas.OpSignature, inputs: Bound, attributes: Mapping[str, Any], node: ir.Node) -> None:
    """Gives the outputs of `node` the dtype that follows from the signature, so that constants beside them get the right one."""
    if signature.name == "Cast":
        node.outputs[0].dtype = ir.DataType(attributes["to"])
        return
    types = {
        parameter.type_constraint.name: value.dtype
        for (parameter, _), value in zip(inputs, node.inputs, strict=False)
        if value is not None and value.dtype is not None and not _is_sequence(value)
    }
    for parameter, output in zip(signature.outputs, node.outputs, strict=False):
        allowed = parameter.type_constraint.allowed_types
        if takes_sequence(parameter):
            output.type = ir.SequenceType(ir.TensorType(_element_dtype(attributes, node) or ir.DataType.UNDEFINED))
        elif parameter.type_constraint.name in types:
            output.dtype = types[parameter.type_constraint.name]
        elif len(allowed) == 1:
            output.dtype = next(iter(allowed)).dtype


def _element_dtype(attributes: Mapping[str, Any], node: ir.Node) -> ir.DataType | None:
    """The dtype of the tensors in the sequence that `node` makes; None if it is not known."""
    if node.op_type == "SequenceEmpty":
        return ir.DataType(attributes["dtype"] or ir.DataType.FLOAT)
    first = node.inputs[0]
    return None if first is None else first.dtype


def _is_sequence(value: ir.Value) -> bool:
    return isinstance(value.type, ir.SequenceType)
