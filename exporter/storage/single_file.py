"""Writes a model and its weights to one file, the weights straight from memory: protobuf's own writer would copy them twice.

A protobuf message is a sequence of fields in any order; each is a tag, its length and its content (protobuf.dev, Encoding). The numbers
of the fields are those of onnx.proto3.
"""

from __future__ import annotations

import pathlib

import onnx
import onnx_ir as ir

from onnxplain import weights

_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_RAW_DATA = 9


def write(model: ir.Model, path: pathlib.Path) -> None:
    """Writes `model` to `path`. Its weights together must stay below `weights.PROTOBUF_LIMIT`, the limit of a protobuf message."""
    values = weights.of(model)
    with weights.set_aside(model, values, as_inputs=False):
        message = ir.to_proto(model)
    graph = message.graph.SerializeToString()
    message.ClearField("graph")
    heads = [_initializer(value) for value in values]
    size = len(graph) + sum(len(head) + weights.size_of(value) for head, value in zip(heads, values, strict=True))
    with path.open("wb") as file:
        file.write(message.SerializeToString())
        file.write(_field(_MODEL_GRAPH, size))
        file.write(graph)
        for head, value in zip(heads, values, strict=True):
            file.write(head)
            value.const_value.tofile(file)  # type: ignore[union-attr]  # these values are initializers, which hold tensors


def _initializer(value: ir.Value) -> bytes:
    """The field of one initializer up to its data, which comes last."""
    tensor = value.const_value
    assert tensor is not None
    message = onnx.TensorProto(name=value.name, dims=tensor.shape.numpy(), data_type=int(tensor.dtype))
    described = bytes(message.SerializeToString()) + _field(_TENSOR_RAW_DATA, tensor.nbytes)
    return _field(_GRAPH_INITIALIZER, len(described) + tensor.nbytes) + described


def _field(number: int, length: int) -> bytes:
    """The tag and the length of a field; its content follows."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    """Seven bits in each byte, the lowest first. The eighth bit says that more bytes follow."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
