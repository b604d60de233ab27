"""Compares what two blocks with equal blocks around them became."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain import weights
from onnxplain.source import locations

from .run import Run

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


class Unequal(Exception):
    """Two blocks became different nodes, or nodes that cannot be copied."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Where the input of a node in a block comes from.

    Attributes:
        kind: `own`: a node of the block. `before`: a node of the block before it. `given`: a weight or input that the block alone reads.
            `computed`: a weight that is computed from such weights. `shared`: what is the same for all blocks.
        place: The place of the node in its block, or of the weight among those that the block alone reads.
        output: Which output of the node it is.
        value: The value that is the same for all blocks, or the weight that is computed.
        parts: What the weight is computed from.
    """

    kind: str
    place: int = 0
    output: int = 0
    value: ir.Value | None = None
    parts: Sequence[Source] = ()


def compared(run: Run, nodes: Sequence[Sequence[ir.Node]], values: Mapping[torch.fx.Node, ir.Value]) -> list[list[Source]]:
    """Where the inputs of the nodes of the third block come from, in every block.

    Args:
        run: The blocks.
        nodes: The ONNX nodes of those that were built.
        values: The values for the weights and inputs of the program.

    Raises:
        Unequal: The nodes of the second block are others, or read something else.
    """
    comparison = _Comparison(run, nodes, values)
    return [comparison.sources(*each) for each in zip(nodes[1], nodes[2], strict=True)] if len(nodes[1]) == len(nodes[2]) else _refuse()


def _refuse() -> list[list[Source]]:
    raise Unequal


class _Comparison:
    """Compares the second block of a run with the third.

    Args:
        run: As for `compared`.
        nodes: As for `compared`.
        values: As for `compared`.
    """

    def __init__(self, run: Run, nodes: Sequence[Sequence[ir.Node]], values: Mapping[torch.fx.Node, ir.Value]) -> None:
        self._operators: list[dict[Any, int]] = [{node: place for place, node in enumerate(run.blocks[index])} for index in range(3)]
        self._made = [_outputs(each) for each in nodes[:3]]
        self._results = [dict(self._numbered(nodes[block], block)) for block in range(2)]
        self._given = [{id(values[node]): place for place, node in enumerate(run.given[index])} for index in range(3)]

    def sources(self, one: ir.Node, other: ir.Node) -> list[Source]:
        """Where the inputs of two nodes in the same place of the two blocks come from."""
        same = (
            one.op_identifier() == other.op_identifier()
            and one.version == other.version
            and self._operator(one, 1) == self._operator(other, 2)
            and len(one.inputs) == len(other.inputs)
            and len(one.outputs) == len(other.outputs)
            and one.attributes.keys() == other.attributes.keys()
            and all(_equal_attributes(each, other.attributes[name]) for name, each in one.attributes.items())
            and all(map(_equal_types, one.outputs, other.outputs))
        )
        if not same:
            raise Unequal
        return [self._source(*each) for each in zip(one.inputs, other.inputs, strict=True)]

    def _operator(self, node: ir.Node, block: int) -> int:
        return self._operators[block][node.meta[locations.FX_NODE]]

    def _source(self, one: ir.Value | None, other: ir.Value | None) -> Source:
        if one is other:
            return Source("shared", value=other)
        if one is None or other is None:
            raise Unequal
        own = self._made[2].get(other)
        if own is not None and own == self._made[1].get(one):
            return Source("own", *own)
        before = self._results[1].get(other)
        if before is not None and before == self._results[0].get(one):
            return Source("before", *self._made[1][other])
        given = self._given[2].get(id(other))
        if given is not None and given == self._given[1].get(id(one)):
            return Source("given", given)
        return self._constant(one, other)

    def _numbered(self, nodes: Sequence[ir.Node], block: int) -> Iterator[tuple[ir.Value, tuple[object, ...]]]:
        """What a block makes, each with what tells it apart: the nodes of the first block may be others than those of the next ones."""
        counts: collections.Counter[object] = collections.Counter()
        for node in nodes:
            kind = self._operator(node, block), node.op_identifier()
            counts[kind] += 1
            for output, value in enumerate(node.outputs):
                own = self._operators[block].get(value.meta.get(locations.FX_NODE))
                # NOTE: the first of equal layers often has a function to itself, with more results: it computes what all of them need.
                is_call = locations.CALL in node.meta and own is not None
                yield value, ("result", own) if is_call else (kind, counts[kind], output)

    def _constant(self, one: ir.Value, other: ir.Value) -> Source:
        first, second = one.const_value, other.const_value
        if isinstance(first, weights.Computed) and isinstance(second, weights.Computed):
            values = list(zip(first.values, second.values, strict=False))
            if first.formula.key == second.formula.key and _equal_types(one, other):
                return Source("computed", value=other, parts=[self._source(*each) for each in values])
        elif first is not None and second is not None and not isinstance(first, weights.Weight) and not isinstance(second, weights.Weight):
            equal = _equal_types(one, other) and first.dtype is not ir.DataType.STRING and first.tobytes() == second.tobytes()
            if equal:
                return Source("shared", value=other)
        raise Unequal


def _outputs(nodes: Sequence[ir.Node]) -> dict[ir.Value, tuple[int, int]]:
    return {value: (place, output) for place, node in enumerate(nodes) for output, value in enumerate(node.outputs)}


def _equal_types(one: ir.Value, other: ir.Value) -> bool:
    return one.type == other.type and one.shape == other.shape


def _equal_attributes(one: ir.Attr, other: ir.Attr) -> bool:
    if one.type != other.type or one.type in _GRAPHS:
        return False
    if one.type is ir.AttributeType.TENSOR:
        first, second = one.as_tensor(), other.as_tensor()
        return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()
    return bool(one.value == other.value)
