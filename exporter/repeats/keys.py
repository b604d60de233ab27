"""Keys that are equal for operators, weights and inputs that become the same in ONNX."""

from __future__ import annotations

import collections
import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec

from onnxplain.passes import Prepared
from onnxplain.recording import LIMIT
from onnxplain.registry import OnnxRegistry, qualified_name
from onnxplain.torch_internals.fake_tensors import has_no_data
from onnxplain.torch_internals.operators import OpOverload, schema
from onnxplain.torch_internals.symbolic_expressions import expression_of

_NODE = object()
"""Stands for a node among the arguments of a node."""

_EXACT = frozenset({bool, int, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})

_SEQUENCES = (tuple, list)


class Keys:
    """Makes the keys of a program.

    Args:
        prepared: The program.
        registry: The translations of its operators.

    Attributes:
        given: The keys of the weights and inputs.
    """

    def __init__(self, prepared: Prepared, registry: OnnxRegistry) -> None:
        self._is_unlike = functools.cache(lambda target: _writes(target) or registry.is_users(qualified_name(target)))
        program = prepared.program
        placeholders = [node for node in prepared.graph_module.graph.nodes if node.op == "placeholder"]
        specs = dict(zip(placeholders, program.graph_signature.input_specs, strict=True))
        tensors = {node: _tensor(program, spec) for node, spec in specs.items()}
        names = collections.Counter(id(each) for each in tensors.values() if each is not None)
        self.given: Mapping[torch.fx.Node, object] = {
            # NOTE: a tied weight is one initializer for several inputs of the graph.
            node: object() if names[id(tensors[node])] > 1 else (spec.kind, _given(node.meta.get("val")), _data(spec, tensors[node]))
            for node, spec in specs.items()
        }

    def of(self, node: torch.fx.Node) -> tuple[object, list[torch.fx.Node]]:
        """The key of an operator, and the nodes among its arguments, in order. They do not belong to the key."""
        arguments: list[torch.fx.Node] = []
        # NOTE: a translation of the user may do something else each time, and a write concerns others than those that read its result.
        # Graphs, and constants that passes made, are attributes.
        if node.op == "get_attr" or self._is_unlike(node.target):
            return object(), [*node.all_input_nodes]
        kwargs = _structure(node.kwargs, arguments) if node.kwargs else None
        return (node.target, _structure(node.args, arguments), kwargs, _value(node.meta.get("val"))), arguments


def _writes(target: object) -> bool:
    return isinstance(target, OpOverload) and bool(schema(target).is_mutable)


def _structure(argument: Any, nodes: list[torch.fx.Node]) -> object:
    """A key for an argument; the nodes in it are appended to `nodes`."""
    # NOTE: every argument in a graph comes here, and a look at its type takes less time than `isinstance`.
    kind = type(argument)
    if kind is torch.fx.Node:
        nodes.append(argument)
        return _NODE
    if kind in _EXACT:
        return kind, argument
    if isinstance(argument, _SEQUENCES):
        return (list if isinstance(argument, list) else tuple, *[_structure(each, nodes) for each in argument])
    if isinstance(argument, dict):
        return (dict, *[(name, _structure(each, nodes)) for name, each in argument.items()])
    # NOTE: 0.0 equals -0.0, and NaN nothing.
    return kind, repr(argument) if isinstance(argument, float | complex) else object()


def _value(value: Any) -> object:
    """A key for the dtype and the shape of a fake value."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.layout, tuple([each if isinstance(each, int) else expression_of(each) for each in value.shape])
    if isinstance(value, list | tuple):
        return (type(value), *map(_value, value))
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return type(value), expression_of(value)
    return type(value), repr(value)


def _given(value: Any) -> object:
    """A key for a fake value whose strides decide those of all results."""
    is_strided = isinstance(value, torch.Tensor) and value.layout is torch.strided
    return _value(value), tuple(map(_size, value.stride())) if is_strided else None


def _size(size: int | torch.SymInt) -> object:
    return size if isinstance(size, int) else expression_of(size)


def _tensor(program: torch.export.ExportedProgram, spec: InputSpec) -> torch.Tensor | None:
    """The weight that an input of the graph stands for."""
    if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR) or spec.target is None:
        return None
    found: torch.Tensor | None = program.state_dict.get(spec.target)
    if found is None:
        found = program.constants[spec.target]
    return found


def _data(spec: InputSpec, tensor: torch.Tensor | None) -> object:
    """The data of a weight that translations compute with."""
    if tensor is None:
        return None
    fixed = spec.kind is InputKind.CONSTANT_TENSOR or (spec.kind is InputKind.BUFFER and not spec.persistent)
    # NOTE: a quantization reads the limits of its integers.
    limit = tensor.numel() == 1 and not tensor.is_floating_point()
    if not (fixed or limit) or tensor.numel() > LIMIT or has_no_data(tensor):
        return fixed
    return fixed, repr(tensor.tolist())
