"""The signatures of ONNX operators, and how Python arguments fit them."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

if TYPE_CHECKING:
    from onnxscript import values

Bound = list[tuple[ir.schemas.Parameter, Any]]
"""The inputs of an operator with the Python arguments for them. The argument of a variadic input is a list."""


class UnknownArgument(ValueError):
    """A call names an argument that the ONNX operator does not have.

    Attributes:
        name: The argument.
        nearest: The operator's argument whose name is most similar; None if none is similar.
        is_int: Whether `nearest` is an attribute that holds one int.
    """

    def __init__(self, signature: ir.schemas.OpSignature, name: str) -> None:
        parameters = {parameter.name: parameter for parameter in signature.params}
        self.name = name
        self.nearest = next(iter(difflib.get_close_matches(name, parameters, n=1)), None)
        self.is_int = getattr(parameters.get(self.nearest or ""), "type", None) is ir.AttributeType.INT
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else f"; it has {', '.join(parameters)}"
        super().__init__(f"{signature.name} has no argument {name!r}{hint}")


@functools.cache
def newest(name: str, oldest: int = 18) -> ir.schemas.OpSignature:
    """An operator as the opset `oldest` has it, or as the first later opset that has it.

    Raises:
        AttributeError: ONNX has no such operator.
    """
    for opset in range(oldest, onnx.defs.onnx_opset_version() + 1):
        if onnx.defs.has(name, opset, ""):
            return of_version("", name, onnx.defs.get_schema(name, opset, "").since_version)
    raise AttributeError(f"there is no ONNX operator {name}")


def of_onnxscript(op: values.Op) -> ir.schemas.OpSignature:
    """The signature of an operator of an onnxscript opset, which has it."""
    assert op.op_schema is not None
    return of_version(op.op_schema.domain, op.op_schema.name, op.op_schema.since_version)


@functools.cache
def of_version(domain: str, name: str, version: int) -> ir.schemas.OpSignature:
    """An operator as a version of its domain has it."""
    return ir.schemas.OpSignature.from_op_schema(onnx.defs.get_schema(name, version, domain))


def bind(signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Bound, dict[str, Any]]:
    """Sorts Python arguments into the operator's inputs and attributes.

    Returns:
        The inputs in order, None for those left out, and the attributes by name, None for those left out.

    Raises:
        UnknownArgument: A keyword is the name of no input and no attribute.
        ValueError: A required argument is missing, or there are too many.
    """
    inputs: Bound = []
    attributes: dict[str, Any] = {}
    rest = list(args)
    for parameter in signature.params:
        if isinstance(parameter, ir.schemas.Parameter):
            if parameter.variadic:
                inputs.append((parameter, rest))
                rest = []
            elif rest:
                inputs.append((parameter, rest.pop(0)))
            else:
                argument = kwargs.get(parameter.name)
                if argument is None and parameter.required:
                    raise ValueError(f"{signature.name} needs an input {parameter.name!r}")
                inputs.append((parameter, argument))
        else:
            attributes[parameter.name] = _attribute_value(signature, parameter, rest.pop(0) if rest else kwargs.get(parameter.name))
    known = {parameter.name for parameter in signature.params}
    unknown = [name for name in kwargs if name not in known]
    if unknown:
        raise UnknownArgument(signature, unknown[0])
    if rest:
        raise ValueError(f"{signature.name} has no further arguments")
    return inputs, attributes


def _attribute_value(signature: ir.schemas.OpSignature, parameter: ir.schemas.AttributeParameter, value: Any) -> Any:
    if value is None and parameter.required:
        raise ValueError(f"{signature.name} needs an attribute {parameter.name!r}")
    return float(value) if parameter.type is ir.AttributeType.FLOAT and isinstance(value, int) else value


def takes_sequence(parameter: ir.schemas.Parameter) -> bool:
    """Whether an input or output is an ONNX sequence."""
    return all(isinstance(allowed, ir.SequenceType) for allowed in parameter.type_constraint.allowed_types)


def output_count(signature: ir.schemas.OpSignature, attributes: Mapping[str, Any]) -> int:
    """How many outputs a call has.

    Raises:
        ValueError: The signature leaves it open.
    """
    match signature.name:
        case "BatchNormalization" if not attributes.get("training_mode"):
            return 1
        case "Split":
            if not isinstance(attributes.get("num_outputs"), int):
                raise ValueError("Split needs num_outputs here; `ops.emit` records a split into sizes, with the number of outputs")
            return int(attributes["num_outputs"])
        case _:
            return len(signature.outputs)
