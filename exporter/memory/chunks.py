"""Rewrites a tensor that a reduction collapses: a Scan computes it in chunks, and reduces each at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import Recorder, Tensor, op, recording

from .attention import Attention
from .collapse import ARGUMENTS, Collapse

_CHUNK = 2**21
"""Bytes of a chunk of the large tensor: the caches of common processors hold it, and a step takes much longer than to begin one."""
_ROWS = 2**23
"""Bytes of a chunk of an attention's scores: each chunk reads all keys and values again."""
LEAST_ROWS = 128
"""The rows of such a chunk at least: a product of fewer is slow."""
_THEN = {"ReduceL1": "ReduceSum", "ReduceSumSquare": "ReduceSum"}
"""What reduces the results of a reduction along another dim, where that is not the same reduction."""


def compute_in_chunks(model: ir.Model, found: Collapse) -> bool:
    """Replaces the operators of `found` by a Scan, in place. Returns False if that needs a dim that there is not."""
    axis = _axis(found)
    if axis is None:
        return False
    recorder = Recorder(model.opset_imports.get("", 20))
    with recording(recorder, onnxscript=False):
        result = (_Rows if isinstance(found, Attention) else _Chunks)(found, axis, recorder).result()
    graph, reduction = model.graph, found.reduction
    made = recorder.take()
    for number, node in enumerate(made):
        _describe(node, reduction, f"{reduction.outputs[0].name}.chunks_{number}")
    for number, constant in enumerate(recorder.constants.values()):
        if constant.uses():
            constant.name = f"{reduction.outputs[0].name}.chunks_constant_{number}"
            graph.register_initializer(constant)
    ir.convenience.replace_nodes_and_values(graph, reduction, [reduction, *reversed(found.nodes)], made, reduction.outputs, [result])
    return True


def _axis(found: Collapse) -> int | None:
    """The dim to cut: the largest that the result keeps, or else the first of several that are reduced."""
    if isinstance(found, Attention):
        return len(found.shape) - 2
    kept = [axis for axis in range(len(found.shape)) if axis not in found.axes and found.sizes[axis] > 1]
    if kept:
        return max(kept, key=lambda axis: found.sizes[axis])
    return found.axes[0] if len(found.axes) > 1 and found.reduction.op_type not in ARGUMENTS else None


class _Chunks:
    """The operators that compute a collapsed tensor in chunks along a dim.

    Args:
        found: The operators that they replace.
        axis: The dim.
        recorder: Records them.
    """

    _chunk = _CHUNK
    _least = 1

    def __init__(self, found: Collapse, axis: int, recorder: Recorder) -> None:
        self._found = found
        self._axis = axis
        self._recorder = recorder
        self._cut = [leaf for leaf in found.leaves if self._place(leaf) is not None]
        self._kept = axis not in found.axes
        self._length = self._dim(axis)
        row = math.prod(size for other, size in enumerate(found.shape) if isinstance(size, int) and other != axis)
        dynamic = [self._dim(other) for other, size in enumerate(found.shape) if not isinstance(size, int) and other != axis]
        for each in dynamic:
            row = op.Mul(each, [row] if isinstance(row, int) else row)
        width = found.size // max(1, math.prod(found.sizes))
        self._size = self._fitting(row, max(1, self._chunk // max(1, width)))
        self._count = op.Max(op.Div(op.Sub(op.Add(self._length, self._size), [1]), self._size), [1])
        self._padded = op.Mul(self._count, self._size)

    def result(self) -> ir.Value:
        """The value that takes the place of the reduction's result."""
        found = self._found
        position = sum(1 for other in range(self._axis) if self._keeps_dims or other not in self._first_axes)
        (stacked,) = self._recorder.emit(
            "Scan",
            [self._in_chunks(leaf) for leaf in self._cut],
            {
                "body": self._body(),
                "num_scan_inputs": len(self._cut),
                "scan_input_axes": [self._place(leaf) for leaf in self._cut],
                "scan_output_axes": [position],
            },
            1,
        )
        named = self._reduced([size if isinstance(size, int) else None for size in found.shape])
        stacked.type = found.reduction.outputs[0].type
        stacked.shape = ir.Shape([*named[:position], self._number(self._count), self._number(self._size), *named[position + 1 :]])
        joined = op.Reshape(stacked, self._vector(stacked, position, 2, [self._padded], len(named) + 1))
        whole: ir.Value = joined if self._is_whole else op.Slice(joined, [0], self._length, [position])
        if self._kept:
            return whole
        kind = _THEN.get(found.reduction.op_type, found.reduction.op_type)
        (result,) = self._recorder.emit(kind, [whole, [position]], {"keepdims": int(self._keeps_dims)}, 1)
        return result

    def _reduced(self, sizes: Sequence[int | None]) -> list[int | None]:
        """The shape of the large tensor, or of a chunk, after the reduction of each chunk."""
        if self._keeps_dims:
            return [1 if axis in self._first_axes else size for axis, size in enumerate(sizes)]
        return [size for axis, size in enumerate(sizes) if axis not in self._first_axes]

    @property
    def _keeps_dims(self) -> bool:
        keeps = self._found.reduction.attributes.get("keepdims")
        return keeps is None or bool(keeps.as_int())

    @property
    def _is_whole(self) -> bool:
        """Whether all chunks are known to have the same length."""
        return self._number(self._padded) == self._found.shape[self._axis]

    @property
    def _first_axes(self) -> tuple[int, ...]:
        """The dims that each chunk is reduced along."""
        return tuple(axis for axis in self._found.axes if axis != self._axis)

    def _fitting(self, row: Any, elements: int) -> Any:
        """The length of a chunk with at most so many elements."""
        if isinstance(row, int) and isinstance(self._found.shape[self._axis], int):
            length = self._found.sizes[self._axis]
            most = max(1, min(length, max(self._least, elements // max(1, row))))
            divisor = next(size for size in range(most, 0, -1) if length % size == 0)
            # NOTE: chunks of equal length need no padding.
            return op.Constant(value_ints=[divisor if 2 * divisor >= most else most])
        row = [row] if isinstance(row, int) else row
        return op.Max(op.Min(op.Max(op.Div([elements], op.Max(row, [1])), [self._least]), self._length), [1])

    def _dim(self, axis: int) -> Any:
        """A dim of the large tensor, as a vector of one element."""
        size = self._found.shape[axis]
        if isinstance(size, int):
            return op.Constant(value_ints=[size])
        leaf, place = next((leaf, place) for leaf in self._found.leaves if (place := self._place(leaf, axis)) is not None)
        return op.Shape(leaf, start=place, end=place + 1)

    def _place(self, leaf: ir.Value, axis: int | None = None) -> int | None:
        """The dim of a leaf that is a dim of the large tensor, not broadcast to it."""
        axis = self._axis if axis is None else axis
        shape = self._found.shape_of(leaf)
        place = axis - len(self._found.shape) + len(shape)
        return None if place < 0 or shape[place] != self._found.shape[axis] else place

    def _in_chunks(self, leaf: ir.Value) -> ir.Value:
        """A leaf with two dims in the place of the one that is cut: chunks, and the elements of each."""
        place = self._place(leaf)
        assert place is not None
        rank = len(self._found.shape_of(leaf))
        none_before = [0] * (rank + place)
        pads = op.Concat(none_before, op.Sub(self._padded, self._length), [0] * (rank - place - 1), axis=0)
        whole = leaf if self._is_whole else op.Pad(leaf, pads)
        chunks: ir.Value = op.Reshape(whole, self._vector(leaf, place, 1, [self._count, self._size], rank))
        return chunks

    @staticmethod
    def _number(value: ir.Value) -> int | None:
        """The element of a constant vector; None if only a run tells it."""
        return None if value.const_value is None else int(value.const_value.numpy()[0])

    @staticmethod
    def _vector(value: ir.Value, start: int, count: int, dims: Sequence[Any], rank: int) -> ir.Value:
        """The shape of `value`, with other dims in the place of `count` from `start` on."""
        parts = [*([op.Shape(value, start=0, end=start)] if start else []), *dims]
        parts += [op.Shape(value, start=start + count, end=rank)] if start + count < rank else []
        shape: ir.Value = op.Concat(*parts, axis=0)
        return shape

    def _body(self) -> ir.Graph:
        """The graph that computes and reduces a chunk."""
        found, prefix = self._found, f"{self._found.reduction.outputs[0].name}.chunk"
        size = self._number(self._size)
        values: dict[ir.Value | None, ir.Value | None] = {}
        for number, leaf in enumerate(self._cut):
            place = self._place(leaf)
            dims = [size if axis == place else dim for axis, dim in enumerate(self._found.shape_of(leaf))]
            values[leaf] = Tensor(name=f"{prefix}_in_{number}", type=leaf.type, shape=ir.Shape(dims))
        inputs = [value for value in values.values() if value is not None]
        nodes = []
        for number, node in enumerate((*found.nodes, found.reduction)):
            # NOTE: the second factor of a product of matrices is read as a whole.
            given = [value if node.op_type == "MatMul" and index else values.get(value, value) for index, value in enumerate(node.inputs)]
            if node is found.reduction and not self._kept:
                given = [given[0], self._recorder.constant(list(self._first_axes))]
            shape = found.shape if node is found.reduction else found.shape_of(node.outputs[0])
            sizes = [size if isinstance(size, int) else None for size in shape]
            sizes[self._axis - len(found.shape)] = self._number(self._size)
            made = Tensor(
                name=f"{prefix}_{number}",
                type=node.outputs[0].type,
                shape=ir.Shape(self._reduced(sizes) if node is found.reduction else sizes),
            )
            nodes.append(
                ir.Node("", node.op_type, given, attributes=list(node.attributes.values()), outputs=[made], name=f"{prefix}_{number}")
            )
            _describe(nodes[-1], node, f"{prefix}_{number}")
            values[node.outputs[0]] = made
        return ir.Graph(inputs, list(nodes[-1].outputs), nodes=nodes, name="chunk")


class _Rows(_Chunks):
    """The operators that compute an attention for some rows at a time."""

    _chunk = _ROWS
    _least = LEAST_ROWS

    def _reduced(self, sizes: Sequence[int | None]) -> list[int | None]:
        size = self._found.shape_of(self._found.reduction.outputs[0])[-1]
        return [*sizes[:-1], size if isinstance(size, int) else None]

    def _dim(self, axis: int) -> Any:
        if axis < len(self._found.shape) - 1 or isinstance(self._found.shape[axis], int):
            return super()._dim(axis)
        return op.Shape(self._found.first.inputs[1], start=-1)


def _describe(node: ir.Node, origin: ir.Node, name: str) -> None:
    """Gives a node the origin of another, and names to it and to its results."""
    node.name = name
    node.meta.update(origin.meta)
    node.metadata_props.update(origin.metadata_props)
    for number, value in enumerate(node.outputs):
        value.name = value.name or (name if len(node.outputs) == 1 else f"{name}.{number}")
