"""When two module calls compute the same from other weights and inputs, so that one function does for both."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import onnx_ir as ir


def structure(inputs: Sequence[ir.Value], body: Sequence[ir.Node], outputs: Sequence[ir.Value]) -> Hashable:
    """A key that is equal for bodies with the same operators, attributes, constants, dtypes and shapes.

    Args:
        inputs: What the body reads; all else that it reads are constants.
        body: Nodes in order.
        outputs: What others read of the body.
    """
    numbers: dict[ir.Value, int] = {}
    for value in inputs:
        numbers[value] = len(numbers)
    nodes = tuple(_nodes(body, numbers))
    return tuple(map(_type, inputs)), nodes, tuple(numbers[value] for value in outputs)


def _nodes(nodes: Sequence[ir.Node] | ir.Graph, numbers: dict[ir.Value, int]) -> Iterator[Hashable]:
    for node in nodes:
        read = tuple(_read(value, numbers) for value in node.inputs)
        attributes = tuple(_attribute(each, numbers) for _, each in sorted(node.attributes.items()))
        for value in node.outputs:
            numbers[value] = len(numbers)
        yield node.op_identifier(), read, attributes, tuple(map(_type, node.outputs))


def _read(value: ir.Value | None, numbers: dict[ir.Value, int]) -> Hashable:
    return None if value is None else numbers[value] if value in numbers else _tensor(value.const_value)


def _attribute(attribute: ir.Attr, numbers: dict[ir.Value, int]) -> Hashable:
    match attribute.type:
        case ir.AttributeType.GRAPH:
            value: Hashable = _graph(attribute.as_graph(), numbers)
        case ir.AttributeType.GRAPHS:
            value = tuple(_graph(each, numbers) for each in attribute.as_graphs())
        case ir.AttributeType.TENSOR:
            value = _tensor(attribute.as_tensor())
        case ir.AttributeType.TENSORS:
            value = tuple(map(_tensor, attribute.as_tensors()))
        case _:
            value = repr(attribute.value)
    return attribute.name, attribute.type, value


def _graph(graph: ir.Graph, numbers: dict[ir.Value, int]) -> Hashable:
    for value in graph.inputs:
        numbers[value] = len(numbers)
    constants = tuple((numbers.setdefault(value, len(numbers)), _tensor(value.const_value)) for value in graph.initializers.values())
    nodes = tuple(_nodes(graph, numbers))
    return tuple(map(_type, graph.inputs)), constants, nodes, tuple(numbers[value] for value in graph.outputs)


def _tensor(tensor: ir.TensorProtocol | None) -> Hashable:
    if tensor is None:
        return None
    data = repr(tensor.numpy().tolist()) if tensor.dtype is ir.DataType.STRING else tensor.tobytes()
    return tensor.dtype, tuple(tensor.shape.numpy()), data


def _type(value: ir.Value) -> Hashable:
    return value.type, None if value.shape is None else tuple([dim if isinstance(dim, int) else str(dim) for dim in value.shape])
