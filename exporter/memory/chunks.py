"""Rewrites a tensor that a reduction collapses: a Scan computes it in chunks, and reduces each at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import onnx_ir as ir

from onnxplain.recording import Recorder, Tensor, op, recording

from .attention import Attention
from .broadcasting import Shape, axes_of, keeps_dims, repeats
from .collapse import Collapse, place_of
from .cuts import Cut, cut_of

_CHUNK = 2**21
"""Bytes of a chunk of the large tensor: the caches of common processors hold it, and a step takes much longer than to begin one."""
_ROWS = 2**23
"""Bytes of a chunk of an attention's scores: each chunk reads all keys and values again."""
LEAST_ROWS = 128
"""The rows of such a chunk at least: a product of fewer is slow."""
_THEN = {"ReduceL1": "ReduceSum", "ReduceSumSquare": "ReduceSum"}
"""What reduces the results of a reduction along another dim, where that is not the same reduction."""


def compute_in_chunks(model: ir.Model, found: Collapse) -> bool:
    """Replaces the operators of `found` by a Scan, in place. Returns False if there is no way."""
    graph = model.graph
    cut = cut_of(graph, found)
    if cut is None:
        return False
    recorder = Recorder(model.opset_imports.get("", 20))
    with recording(recorder, onnxscript=False):
        chunks = (_Rows if isinstance(found, Attention) else _Chunks)(found, cut, recorder)
        results = [*chunks.results(), *map(chunks.measured, found.measured)]
    made, last = recorder.take(), found.reductions[-1]
    for number, node in enumerate(made):
        _describe(node, last, f"{last.outputs[0].name}.chunks_{number}")
    for number, constant in enumerate(recorder.constants.values()):
        if constant.uses():
            constant.name = f"{last.outputs[0].name}.chunks_constant_{number}"
            graph.register_initializer(constant)
    replaced = [*cut.results, *(node.outputs[0] for node in found.measured)]
    ir.convenience.replace_nodes_and_values(graph, cut.nodes[-1], [*found.measured, *reversed(cut.nodes)], made, replaced, results)
    if len(results) > 1:
        # NOTE: another operator may have read one of the results before the last was there.
        graph.sort()
    return True


_Size: TypeAlias = "int | ir.SymbolicDim | None"


class _Sizes(NamedTuple):
    """The sizes of a dim that is cut: of a chunk, the number of chunks, and both together; None if nothing is known."""

    chunk: _Size
    number: _Size
    padded: _Size


class _Chunks:
    """The operators that compute a collapsed tensor in chunks along a dim.

    Args:
        found: The operators that they replace.
        cut: How to cut.
        recorder: Records them.
    """

    _chunk = _CHUNK
    _least = 1

    def __init__(self, found: Collapse, cut: Cut, recorder: Recorder) -> None:
        self._found = found
        self._cut = cut
        self._axis = axis = cut.axis
        self._recorder = recorder
        self._leaves = [leaf for leaf in cut.leaves if self._place(leaf) is not None]
        self._length = self._dim(axis)
        row = math.prod(size for other, size in enumerate(found.shape) if isinstance(size, int) and other != axis)
        dynamic = [self._dim(other) for other, size in enumerate(found.shape) if not isinstance(size, int) and other != axis]
        for each in dynamic:
            row = op.Mul(each, [row] if isinstance(row, int) else row)
        width = found.size // max(1, math.prod(found.sizes))
        self._elements = max(1, self._chunk // max(1, width))
        self._size = self._fitting(row, self._elements)
        self._count = op.Max(op.Div(op.Sub(op.Add(self._length, self._size), [1]), self._size), [1])
        self._padded = op.Mul(self._count, self._size)

    def results(self) -> list[ir.Value]:
        """The values that take the places of the cut's results."""
        positions = [self._position(value) for value in self._cut.results]
        stacked = self._recorder.emit(
            "Scan",
            [self._in_chunks(leaf) for leaf in self._leaves],
            {
                "body": self._body(),
                "num_scan_inputs": len(self._leaves),
                "scan_input_axes": [self._place(leaf) for leaf in self._leaves],
                "scan_output_axes": positions,
            },
            len(positions),
        )
        return [self._joined(*each) for each in zip(self._cut.results, stacked, positions, strict=True)]

    def measured(self, shape: ir.Node) -> ir.Value:
        """What takes the place of the result of a Shape that reads a large tensor."""
        start, end = (shape.attributes.get_int(name, default) for name, default in (("start", 0), ("end", len(self._found.shape))))
        dims = [self._dim(axis) for axis in range(len(self._found.shape))][start:end]
        result: ir.Value = op.Concat(*dims, axis=0)
        return result

    def _joined(self, value: ir.Value, stacked: ir.Value, position: int) -> ir.Value:
        """What takes the place of a value, by its parts of all chunks."""
        named = self._chunk_shape(value)
        stacked.type = value.type
        stacked.shape = ir.Shape([*named[:position], self._sizes_of.number, self._sizes_of.chunk, *named[position + 1 :]])
        joined = op.Reshape(stacked, self._vector(stacked, position, 2, [self._padded], len(named) + 1))
        joined.shape = ir.Shape([*named[:position], self._sizes_of.padded, *named[position + 1 :]])
        whole: ir.Value = joined if self._is_whole else op.Slice(joined, [0], self._length, [position])
        if not self._cut.is_kept:
            reduction = self._found.reductions[0]
            kind = _THEN.get(reduction.op_type, reduction.op_type)
            (whole,) = self._recorder.emit(kind, [whole, [position]], {"keepdims": int(keeps_dims(reduction))}, 1)
        if (known := self._found.shape_of(value)) is not None:
            whole.shape = ir.Shape(known)
        return whole

    def _position(self, value: ir.Value) -> int:
        """The dim of a result along which its parts are joined."""
        node = value.producer()
        if node in self._found.reductions:
            return sum(1 for axis in range(self._axis) if keeps_dims(node) or axis not in self._removed(node))
        place = self._place(value)
        assert place is not None
        return place

    def _removed(self, reduction: ir.Node) -> Sequence[int]:
        """The dims that a reduction removes of each chunk."""
        return [axis for axis in axes_of(reduction, len(self._found.shape)) if axis != self._axis]

    @functools.cached_property
    def _sizes_of(self) -> _Sizes:
        """The sizes of the dim that is cut. Where only a run tells them, by the names of other dims, from which the memory is estimated."""
        known = [self._number(each) for each in (self._size, self._count, self._padded)]
        if None not in known:
            return _Sizes(*known)
        shape, axis = self._found.shape, self._axis
        if any(isinstance(size, ir.SymbolicDim) and size.value is None for size in shape):
            return _Sizes(*known)
        others = [size for other, size in enumerate(shape) if other != axis]
        row = "*".join([str(math.prod(size for size in others if isinstance(size, int))), *map(_text, filter(_is_dynamic, others))])
        length, fitting = _text(shape[axis]), f"{self._elements}//Max(1, {row})"
        # NOTE: no chunk is shorter than one row, whatever fits.
        fitting = f"Max({self._least}, {fitting})" if self._least > 1 else fitting
        chunk = f"Max(1, Min({length}, {fitting}))" if known[0] is None else str(known[0])
        count = f"Max(1, ({length} + {chunk} - 1)//{chunk})"
        named = (ir.SymbolicDim(each) for each in (chunk, count, f"{count}*{chunk}"))
        return _Sizes(*(name if number is None else number for number, name in zip(known, named, strict=True)))

    def _chunk_shape(self, value: ir.Value) -> list[Any]:
        """The shape of what a chunk has of a value."""
        node, found = value.producer(), self._found
        shape: Shape = found.shape if node in found.reductions else found.shape_of(value) or ()
        sizes: list[Any] = list(shape)
        if (place := place_of(shape, self._axis, found.shape)) is not None:
            sizes[place] = self._sizes_of.chunk
        if node not in found.reductions:
            return sizes
        removed = self._removed(node)
        return [1 if axis in removed else size for axis, size in enumerate(sizes) if axis not in removed or keeps_dims(node)]

    @property
    def _is_whole(self) -> bool:
        """Whether all chunks are known to have the same length."""
        return self._number(self._padded) == self._found.shape[self._axis]

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
        leaf, place = next((leaf, place) for leaf in self._cut.leaves if (place := self._place(leaf, axis)) is not None)
        return op.Shape(leaf, start=place, end=place + 1)

    def _place(self, leaf: ir.Value, axis: int | None = None) -> int | None:
        """The dim of a leaf that is a dim of the large tensor, not broadcast to it."""
        return place_of(self._found.shape_of(leaf) or (), self._axis if axis is None else axis, self._found.shape)

    def _in_chunks(self, leaf: ir.Value) -> ir.Value:
        """A leaf with two dims in the place of the one that is cut: chunks, and the elements of each."""
        place = self._place(leaf)
        assert place is not None
        shape = self._found.shape_of(leaf) or ()
        rank = len(shape)
        none_before = [0] * (rank + place)
        pads = op.Concat(none_before, op.Sub(self._padded, self._length), [0] * (rank - place - 1), axis=0)
        whole = leaf if self._is_whole else op.Pad(leaf, pads)
        chunks: ir.Value = op.Reshape(whole, self._vector(leaf, place, 1, [self._count, self._size], rank))
        if whole is not leaf:
            whole.shape = ir.Shape([*shape[:place], self._sizes_of.padded, *shape[place + 1 :]])
        chunks.shape = ir.Shape([*shape[:place], self._sizes_of.number, self._sizes_of.chunk, *shape[place + 1 :]])
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
        prefix = f"{self._found.reductions[-1].outputs[0].name}.chunk"
        values: dict[ir.Value | None, ir.Value] = {}
        for number, leaf in enumerate(self._leaves):
            values[leaf] = Tensor(name=f"{prefix}_in_{number}", type=leaf.type, shape=ir.Shape(self._chunk_shape(leaf)))
        inputs, nodes = list(values.values()), []
        for number, node in enumerate(self._cut.nodes):
            (value,) = node.outputs
            made = Tensor(name=f"{prefix}_{number}", type=value.type, shape=ir.Shape(self._chunk_shape(value)))
            attributes = [] if repeats(node) else list(node.attributes.values())
            kind = "Expand" if repeats(node) else node.op_type
            nodes.append(ir.Node("", kind, self._given(node, values), attributes=attributes, outputs=[made], name=f"{prefix}_{number}"))
            _describe(nodes[-1], node, f"{prefix}_{number}")
            values[value] = made
        return ir.Graph(inputs, [values[value] for value in self._cut.results], nodes=nodes, name="chunk")

    def _given(self, node: ir.Node, values: Mapping[ir.Value | None, ir.Value]) -> list[ir.Value | None]:
        """What an operator reads in the graph for a chunk."""
        if node.op_type == "MatMul":
            # NOTE: the second factor of a product of matrices is read as a whole.
            return [values.get(node.inputs[0], node.inputs[0]), node.inputs[1]]
        given = [values.get(value, value) for value in node.inputs]
        if repeats(node):
            return [given[0], self._sizes]
        if node in self._found.reductions and not self._cut.is_kept:
            return [given[0], self._recorder.constant(list(self._removed(node)))]
        return given

    @functools.cached_property
    def _sizes(self) -> ir.Value:
        """The shape of a chunk of the large tensor."""
        dims = [self._size if axis == self._axis else self._dim(axis) for axis in range(len(self._found.shape))]
        shape: ir.Value = op.Concat(*dims, axis=0)
        return shape


class _Rows(_Chunks):
    """The operators that compute an attention for some rows at a time."""

    _chunk = _ROWS
    _least = LEAST_ROWS

    def _removed(self, reduction: ir.Node) -> Sequence[int]:
        del reduction
        return ()

    def _chunk_shape(self, value: ir.Value) -> list[Any]:
        shape = super()._chunk_shape(value)
        if value in self._found.reductions[0].outputs:
            shape[-1] = (self._found.shape_of(value) or (None,))[-1]
        return shape

    def _dim(self, axis: int) -> Any:
        if axis < len(self._found.shape) - 1 or isinstance(self._found.shape[axis], int):
            return super()._dim(axis)
        return op.Shape(self._found.first.inputs[1], start=-1)


def _is_dynamic(size: int | ir.SymbolicDim) -> bool:
    return not isinstance(size, int)


def _text(size: int | ir.SymbolicDim) -> str:
    """A dim as a factor."""
    text = str(size if isinstance(size, int) else size.value)
    return text if text.isalnum() or text.isidentifier() else f"({text})"


def _describe(node: ir.Node, origin: ir.Node, name: str) -> None:
    """Gives a node the origin of another, and names to it and to its results."""
    node.name = name
    node.meta.update(origin.meta)
    node.metadata_props.update(origin.metadata_props)
    for number, value in enumerate(node.outputs):
        value.name = value.name or (name if len(node.outputs) == 1 else f"{name}.{number}")
