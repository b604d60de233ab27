"""Takes operators that only rearrange or combine weights out of the graph: a transposed weight is a view, read when it is written."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain import weights

from .names import free, names_in

_SMALL = 4096
"""The largest weight that may be in the file twice, as it is and rearranged, in bytes."""

_KINDS = (weights.Weight, weights.Computed)


def precompute(model: ir.Model) -> None:
    """Replaces nodes whose inputs are weights and constants by weights that are computed when they are written.

    A large weight that other nodes also use stays, and so do the nodes that rearrange it: otherwise the file would hold it twice.
    The pass that removes unused nodes takes the weights that nobody uses any more.
    """
    graph = model.graph
    taken = names_in(graph)
    done: dict[tuple[object, ...], list[ir.Value]] = {}
    for node in list(graph.all_nodes()):
        if (
            not _reads_only_weights(node)
            or any(each.is_graph_output() for each in node.outputs)
            or not all(map(_is_replaceable, node.inputs))
        ):
            continue
        # NOTE: the test of a loop is in the model twice; what it computes from a weight must be in the file only once.
        key = (node.op_type, *map(id, node.inputs), *((name, str(each.value)) for name, each in node.attributes.items()))
        if key not in done:
            computed = [_computed(*operator) for operator in _operators(node)]
            done[key] = [_initializer(graph, each, taken) for each in computed if each is not None]
        if not done[key]:
            continue
        for output, value in zip(node.outputs, done[key], strict=True):
            ir.convenience.replace_all_uses_with(output, value)
        # NOTE: the node may be inside a loop. It leaves the loop then.
        node.graph.remove(node, safe=True)  # type: ignore[union-attr]  # the graph's own node


def _initializer(graph: ir.Graph, made: weights.Computed, taken: set[str]) -> ir.Value:
    """A new initializer with a name that is not taken yet."""
    made.name = free(made.name or "weight", taken)
    value = ir.Value(name=made.name, shape=made.shape, type=ir.TensorType(made.dtype), const_value=made)
    graph.register_initializer(value)
    return value


def _reads_only_weights(node: ir.Node) -> bool:
    """Whether all inputs are weights and constants, at least one a weight."""
    if node.domain or (node.op_type != "Split" and (node.op_type not in _OPERATORS or len(node.outputs) != 1)):
        return False
    known = [value is not None and value.const_value is not None for value in node.inputs]
    return all(known) and any(isinstance(value.const_value, _KINDS) for value in node.inputs if value is not None)


def _is_replaceable(value: ir.Value | None) -> bool:
    """Whether the file need not hold `value` as it is, or may hold it twice."""
    if value is None or not isinstance(value.const_value, _KINDS) or weights.size_of(value) <= _SMALL:
        return True
    return not value.is_graph_output() and all(_reads_only_weights(user) for user, _ in value.uses())


_Operator = tuple[str, Sequence[ir.Value | None], Sequence[ir.Attr]]
"""An operator's type, inputs and attributes."""


def _operators(node: ir.Node) -> list[_Operator]:
    """The operator that makes each output of a node: the node itself, or a Slice for each part of a Split."""
    if node.op_type != "Split":
        return [(node.op_type, node.inputs, tuple(node.attributes.values()))]
    data, *sizes = node.inputs
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    assert data is not None
    assert data.shape is not None
    given = sizes[0].const_value if sizes and sizes[0] is not None else None
    length = data.shape[axis]
    assert isinstance(length, int)  # the shape of a weight
    parts = len(node.outputs)
    ends = (
        list(itertools.accumulate(_ints(_constant(given)))) if given is not None else [-(-length // parts) * (i + 1) for i in range(parts)]
    )
    return [("Slice", [data, *(_vector(each) for each in (start, end, axis))], ()) for start, end in itertools.pairwise([0, *ends])]


def _vector(number: int) -> ir.Value:
    tensor = ir.tensor([number], dtype=ir.DataType.INT64)
    return ir.Value(name=f"vector_{number}", shape=ir.Shape([1]), type=ir.TensorType(tensor.dtype), const_value=tensor)


def _computed(op_type: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr]) -> weights.Computed | None:
    """The weight that an operator computes; None if torch cannot compute it."""
    tensors = [value.const_value for value in inputs if value is not None]
    apply = functools.partial(_OPERATORS[op_type], {each.name: each.value for each in attributes})
    try:
        like = apply(*(tensor.like if isinstance(tensor, _KINDS) else _constant(tensor) for tensor in tensors))
    except (RuntimeError, IndexError, TypeError, ZeroDivisionError):
        # NOTE: torch has no equivalent, for example for a negative step or without axes. The node stays in the graph, and so does one
        # along an axis of a scalar, which the checker of ONNX rejects.
        return None
    formula = weights.Formula(
        key=(op_type, *((each.name, str(each.value)) for each in attributes)),
        compute=functools.partial(_compute, apply),
        operators=functools.partial(_new_node, op_type, attributes),
        name=lambda sources: f"{sources[0].name}.{op_type.lower()}",
    )
    return weights.Computed(formula, inputs, like.to("meta"))


def _compute(apply: Callable[..., torch.Tensor], tensors: Sequence[Any]) -> torch.Tensor:
    return apply(*(tensor.raw if isinstance(tensor, _KINDS) else _constant(tensor) for tensor in tensors))


def _new_node(name: str, attributes: Sequence[ir.Attr], inputs: Sequence[ir.Value | None]) -> list[ir.Node]:
    return [ir.Node("", name, inputs, attributes)]


def _constant(tensor: ir.TensorProtocol | None) -> torch.Tensor:
    assert tensor is not None
    return torch.from_numpy(tensor.numpy().copy())


def _ints(tensor: torch.Tensor) -> list[int]:
    return [int(each) for each in tensor.reshape(-1)]


def _slice(_: Mapping[str, Any], data: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    axes = _ints(rest[0]) if rest else list(range(starts.numel()))
    steps = _ints(rest[1]) if len(rest) > 1 else [1] * starts.numel()
    for axis, start, end, step in zip(axes, _ints(starts), _ints(ends), steps, strict=True):
        if step < 1:
            raise NotImplementedError("torch slices forward only")
        size = data.shape[axis]
        low, high, _step = slice(start, end).indices(size)
        data = data.narrow(axis, low, max(0, high - low))[(slice(None),) * (axis % data.ndim) + (slice(None, None, step),)]
    return data


def _gather(attributes: Mapping[str, Any], data: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    axis = attributes.get("axis", 0) % data.ndim
    if indices.ndim == 0 and not indices.is_meta:
        return data.select(axis, int(indices))
    return data[(slice(None),) * axis + (indices.to(data.device),)]


def _transpose(attributes: Mapping[str, Any], data: torch.Tensor) -> torch.Tensor:
    return data.permute(tuple(attributes.get("perm", reversed(range(data.ndim)))))


def _divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _unsqueeze(_: Mapping[str, Any], data: torch.Tensor, axes: torch.Tensor) -> torch.Tensor:
    rank = data.ndim + axes.numel()
    for axis in sorted(each % rank for each in _ints(axes)):
        data = data.unsqueeze(axis)
    return data


def _same_device(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def apply(_: Mapping[str, Any], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        # NOTE: when only the shape is computed, weights are on the meta device, and constants have to be there as well.
        device = a.device if a.is_meta else b.device
        return function(a.to(device), b.to(device))

    return apply


_OPERATORS: Mapping[str, Callable[..., torch.Tensor]] = {
    "Add": _same_device(lambda a, b: a + b),
    "Concat": lambda attributes, *tensors: torch.cat(tensors, dim=attributes["axis"]),
    "Div": _same_device(_divide),
    "Exp": lambda _, data: data.exp(),
    "Gather": _gather,
    "Mul": _same_device(lambda a, b: a * b),
    "Neg": lambda _, data: -data,
    "Reciprocal": lambda _, data: 1 / data,
    "Reshape": lambda _, data, shape: data.reshape(_ints(shape)),
    "Slice": _slice,
    "Sqrt": lambda _, data: data.sqrt(),
    "Squeeze": lambda _, data, axes: data.squeeze(tuple(_ints(axes))),
    "Sub": _same_device(lambda a, b: a - b),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""What torch computes for an ONNX operator, from its attributes and inputs. All of them move data or compute elementwise."""
