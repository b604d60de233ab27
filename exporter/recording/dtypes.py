"""The dtypes of an ONNX operator's inputs and outputs, as its type constraints relate them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from .kernels import LACKING
from .python_values import TENSORS, python_dtype
from .signatures import Bound, of_version, takes_sequence

_D = ir.DataType
_NARROW = frozenset({_D.BFLOAT16, _D.FLOAT16})

_STAND_INS: Mapping[ir.DataType, tuple[ir.DataType, ...]] = {
    _D.BOOL: (_D.UINT8, _D.INT32, _D.INT64, _D.FLOAT),
    _D.UINT8: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.INT8: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.INT16: (_D.INT32, _D.INT64, _D.FLOAT),
    _D.INT32: (_D.INT64, _D.DOUBLE, _D.FLOAT),
    _D.INT64: (_D.DOUBLE, _D.FLOAT),
    _D.FLOAT16: (_D.FLOAT,),
    _D.BFLOAT16: (_D.FLOAT,),
}
"""The dtypes that can take the place of a dtype, the best one first. They hold all its values, but for ints that only floats are left for:
DOUBLE holds them up to 2**53, FLOAT up to 2**24. Nothing takes the place of DOUBLE."""


def bound_dtypes(inputs: Bound) -> dict[str, ir.DataType]:
    """The dtype to which the inputs bind each type constraint, by the constraint's name. The first input with a known dtype counts."""
    types: dict[str, ir.DataType] = {}
    for parameter, argument in inputs:
        for value in argument if isinstance(argument, list | tuple) else (argument,):
            if isinstance(value, ir.Value) and value.dtype is not None and not _is_sequence(value):
                types.setdefault(parameter.type_constraint.name, value.dtype)
    return types


def stand_ins(
    signature: ir.schemas.OpSignature, types: Mapping[str, ir.DataType], opset: int, attributes: Mapping[str, Any]
) -> Mapping[str, ir.DataType]:
    """The dtypes in which to compute instead, by type constraint, where ONNX or the kernels of ONNX Runtime do not take the bound ones."""
    reduces = attributes.get("reduction") not in (None, "none")
    accepted = _accepted(signature.domain, signature.name, signature.since_version, opset, reduces)
    found: dict[str, ir.DataType] = {}
    for name, dtype in types.items():
        known = accepted.get(name)
        if known and dtype not in known:
            stand_in = next((each for each in _STAND_INS.get(dtype, ()) if each in known), None)
            if stand_in is not None:
                found[name] = stand_in
    return found


@functools.cache
def _accepted(domain: str, name: str, version: int, opset: int, reduces: bool) -> Mapping[str, frozenset[ir.DataType]]:
    """The dtypes that an operator takes, by type constraint."""
    allowed = {
        parameter.type_constraint.name: parameter.type_constraint.allowed_types for parameter in of_version(domain, name, version).inputs
    }
    made = {each: {type_.dtype for type_ in types if isinstance(type_, ir.TensorType)} for each, types in allowed.items()}
    known = LACKING.get(name, {}) if not domain else {}
    for since in [since for since in known if since <= opset][-1:]:
        for each, lacks in known[since].items():
            made.get(each, set()).difference_update(ir.DataType[lack] for lack in lacks)
    if reduces and name.startswith("Scatter"):
        # NOTE: the kernels exist, and fail when they run (read in ONNX Runtime 1.31).
        made["T"] -= {_D.BOOL, *_NARROW}
    return {each: frozenset(types) for each, types in made.items()}


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
    if signature.name in ("Cast", "BitCast"):
        node.outputs[0].dtype = ir.DataType(attributes["to"])
        return
    if signature.name == "SequenceAt":
        dtype = _element_dtype(attributes, node)
        if dtype is not None and dtype is not ir.DataType.UNDEFINED:
            node.outputs[0].dtype = dtype
        return
    types = {
        parameter.type_constraint.name: value.dtype
        for (parameter, _), value in zip(inputs, node.inputs, strict=False)
        if value is not None and value.dtype is not None and not _is_sequence(value)
    }
    for parameter, output in zip(_parameters(signature, len(node.outputs)), node.outputs, strict=False):
        allowed = parameter.type_constraint.allowed_types
        if takes_sequence(parameter):
            output.type = ir.SequenceType(ir.TensorType(_element_dtype(attributes, node) or ir.DataType.UNDEFINED))
        elif parameter.type_constraint.name in types:
            output.dtype = types[parameter.type_constraint.name]
        elif len(allowed) == 1:
            output.dtype = next(iter(allowed)).dtype


def _parameters(signature: ir.schemas.OpSignature, outputs: int) -> Sequence[ir.schemas.Parameter]:
    """The parameter for each output: the last one may stand for several of one dtype."""
    known = list(signature.outputs)
    if known and known[-1].variadic and known[-1].homogeneous:
        known += known[-1:] * (outputs - len(known))
    return known


def _element_dtype(attributes: Mapping[str, Any], node: ir.Node) -> ir.DataType | None:
    """The dtype of the tensors in the sequence that `node` makes; None if it is not known."""
    if node.op_type == "SequenceEmpty":
        return ir.DataType(attributes["dtype"] or ir.DataType.FLOAT)
    first = node.inputs[0]
    return None if first is None else first.dtype


def _is_sequence(value: ir.Value) -> bool:
    return isinstance(value.type, ir.SequenceType)
