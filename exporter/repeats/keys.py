"""Keys that are equal for operators, weights and inputs that become the same in ONNX."""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec

from onnxplain.passes import Prepared
from onnxplain.recording import LIMIT
from onnxplain.registry import OnnxRegistry, qualified_name
from onnxplain.torch_internals.fake_tensors import has_no_data
from onnxplain.torch_internals.operators import OpOverload, schema
from onnxplain.torch_internals.symbolic_expressions import expression_of

_Node, _Tensor = torch.fx.Node, torch.Tensor
_NODE = object()
"""Stands for a node among the arguments of a node."""

_EXACT = frozenset({bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})

_SEQUENCES = (tuple, list)

_UNLIKE = -1
"""Stands for a function whose calls are unlike one another."""

_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class Keys:
    """Makes the keys of a program.

    Args:
        prepared: The program.
        registry: The translations of its operators.

    Attributes:
        given: The keys of the weights and inputs.
    """

    def __init__(self, prepared: Prepared, registry: OnnxRegistry) -> None:
        self._registry = registry
        self._targets: dict[int, int] = {}
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

    def of(self, node: torch.fx.Node, read: list[torch.fx.Node]) -> Hashable:
        """The key of an operator. The nodes among its arguments do not belong to it, but are appended to `read`, in order."""
        # NOTE: every operator of a model comes here. The hash of an operator as an object is that of its name.
        target = self._targets.get(id(node.target)) or self._number(node.target)
        # NOTE: graphs, and constants that passes made, are attributes.
        if target == _UNLIKE or node.op == "get_attr":
            read += node.all_input_nodes
            return object()
        key: list[Hashable] = [target, len(node.args)]
        for each in node.args:
            if type(each) is _Node:
                read.append(each)
                key.append(_NODE)
            else:
                _add(each, key, read)
        if node.kwargs:
            _add(node.kwargs, key, read)
        value = node.meta.get("val")
        if isinstance(value, _Tensor):
            key += value.dtype, value.layout
            sizes: Iterable[Any] = value.shape
            key += (each if type(each) is int else expression_of(each) for each in sizes)
        else:
            key.append(_value(value))
        return tuple(key)

    def _number(self, target: object) -> int:
        """A number for what a node calls; `_UNLIKE` if each call is unlike all others."""
        # NOTE: a translation of the user may do something else each time, and a write concerns others than those that read its result.
        is_unlike = _writes(target) or self._registry.is_users(qualified_name(target))
        self._targets[id(target)] = number = _UNLIKE if is_unlike else len(self._targets) + 1
        return number


def _writes(target: object) -> bool:
    return isinstance(target, OpOverload) and bool(schema(target).is_mutable)


def _add(argument: Any, key: list[Hashable], nodes: list[torch.fx.Node]) -> None:
    """Appends an argument to a key, and the nodes in it to `nodes`.

    Each begins with an integer, a node, or a type, which tells what follows: so no two lists of arguments have one key.
    """
    # NOTE: every argument in a graph comes here, and a look at its type takes less time than `isinstance`.
    kind: Any = type(argument)
    if kind is _Node:
        nodes.append(argument)
        key.append(_NODE)
    elif kind is int:
        key.append(argument)
    elif kind in _EXACT:
        key += kind, argument
    elif isinstance(argument, _SEQUENCES):
        key += (list if isinstance(argument, list) else tuple), len(argument)
        for each in argument:
            _add(each, key, nodes)
    elif isinstance(argument, dict):
        key += dict, tuple(argument)
        for each in argument.values():
            _add(each, key, nodes)
    else:
        # NOTE: 0.0 equals -0.0, and NaN nothing.
        key += kind, repr(argument) if isinstance(argument, float | complex) else object()


def _value(value: Any) -> Hashable:
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
    if spec.kind not in _WEIGHTS or spec.target is None:
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
