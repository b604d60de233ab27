"""The values that a graph begins with: inputs of the model, and weights."""

from __future__ import annotations

import builtins
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import InputKind, InputSpec

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.dispatch import Plan
from onnxplain.recording import FIXED, Tensor
from onnxplain.request import Request, constant_of, input_names, is_constant, is_dense
from onnxplain.rules import ComplexAsReal, NanWeight, UnsupportedInputType, UnusedInput
from onnxplain.source import locations
from onnxplain.weights import Weight

from .value_types import ValueTypes, dtype_of

_SEARCHED = 1 << 20
"""The largest number of elements of a weight that is searched for NaN. If training went wrong, small weights are NaN as well."""

_WEIGHTS = frozenset({InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR})


@dataclasses.dataclass(frozen=True)
class Given:
    """The values that a graph begins with.

    Attributes:
        values: The value for each placeholder; a Python value for an input that the export made a constant.
        inputs: The inputs of the ONNX graph, in order.
        weights: The weights, in order, each once.
    """

    values: Mapping[torch.fx.Node, Any]
    inputs: Sequence[ir.Value]
    weights: Sequence[ir.Value]


def inputs_and_weights(context: DiagnosticContext, plan: Plan, request: Request, types: ValueTypes) -> Given:
    """Makes the values for all placeholders, and reports unused and complex inputs, and weights with NaN."""
    values: dict[torch.fx.Node, Any] = {}
    inputs: list[ir.Value] = []
    weights: dict[int, ir.Value] = {}
    program = plan.prepared.program
    names = input_names(program, request.shapes)
    for node, spec in zip(placeholders(plan.prepared.graph_module), program.graph_signature.input_specs, strict=True):
        if spec.kind in _WEIGHTS:
            values[node] = _weight(context, program, spec, weights, plan.prepared.reader(node))
        elif spec.kind is InputKind.USER_INPUT and is_constant(spec.arg):
            values[node] = constant_of(spec.arg)
        elif spec.kind is InputKind.USER_INPUT:
            values[node] = _input(context, request, types, node, names.get(node.name) or _parameter_name(node.name))
            if plan.prepared.reader(node) is None:
                name = values[node].name or node.name
                context.report(UnusedInput(name=name), at=locations.module_definition(request.model))
            inputs.append(values[node])
    return Given(values, inputs, list(weights.values()))


def placeholders(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """The nodes that stand for the inputs of a graph."""
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def initializer(weight: Weight) -> ir.Value:
    """The ONNX value for a weight."""
    return Tensor(name=weight.name, shape=weight.shape, type=ir.TensorType(weight.dtype), const_value=weight)


def _input(context: DiagnosticContext, request: Request, types: ValueTypes, node: torch.fx.Node, name: str) -> ir.Value:
    fake = node.meta["val"]
    if not is_dense(fake) if isinstance(fake, torch.Tensor) else dtype_of(fake) is None:
        # NOTE: torch.export takes such inputs. The capture reports those of our strategies.
        kind = UnsupportedInputType(argument=name, type=f"{type(fake).__module__}.{type(fake).__qualname__}")
        raise context.fail(kind, at=request.caller)
    value = types.assign(Tensor(name=name), fake)
    if isinstance(fake, torch.Tensor) and fake.is_complex():
        context.report(ComplexAsReal(kind="input", name=value.name or ""), at=locations.module_definition(request.model))
    return value


def _parameter_name(name: str) -> str:
    """The parameter's name. torch names the placeholder for `input` `input_1`, since `input` is a Python function."""
    parameter = re.sub(r"_1$", "", name)
    return parameter if hasattr(builtins, parameter) else name


def _weight(
    context: DiagnosticContext,
    program: torch.export.ExportedProgram,
    spec: InputSpec,
    weights: dict[int, ir.Value],
    reader: torch.fx.Node | None,
) -> ir.Value:
    """The value for a parameter, buffer or constant.

    Args:
        context: It gets a finding for a weight with NaN that is read.
        program: The program.
        spec: Describes the weight.
        weights: The values made before, by the ids of their tensors.
        reader: The first operator that reads it.
    """
    assert spec.target is not None
    tensor = program.state_dict.get(spec.target)
    if tensor is None:
        tensor = program.constants[spec.target]
    # NOTE: tied weights are one tensor with several names, and one initializer.
    if id(tensor) in weights:
        known = weights[id(tensor)].const_value
        assert isinstance(known, Weight)
        known.names.append(spec.target)
    else:
        fixed = spec.kind is InputKind.CONSTANT_TENSOR or (spec.kind is InputKind.BUFFER and not spec.persistent)
        weight = Weight(tensor, spec.target, in_state=not fixed, place=len(weights))
        value = weights[id(tensor)] = initializer(weight)
        has_data = weight.has_data
        if fixed and has_data:
            value.meta[FIXED] = True
        if has_data and reader is not None and tensor.is_floating_point() and tensor.numel() <= _SEARCHED and _has_nan(weight.raw):
            context.report(NanWeight(name=spec.target), at=locations.at_node(reader))
    return weights[id(tensor)]


def _has_nan(tensor: torch.Tensor) -> bool:
    # NOTE: the sum is one number instead of a flag for each element. It is also NaN if the tensor has both infinities, hence the second
    # look. torch cannot add up 8-bit floats.
    suspected = tensor.dtype.itemsize == 1 or math.isnan(tensor.sum().item())
    return suspected and bool(tensor.isnan().any())
