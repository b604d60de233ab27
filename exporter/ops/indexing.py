"""Picking elements by tensors of positions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recorder import op

from . import translates

_MASKS = (ir.DataType.BOOL, ir.DataType.UINT8)


@translates("aten::embedding")
def embedding(weight: ir.Value, indices: ir.Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """aten::embedding(Tensor weight, Tensor indices, ...). The other arguments matter for gradients only."""
    del padding_idx, scale_grad_by_freq, sparse
    return op.Gather(weight, indices)


@translates("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(self: ir.Value, indices: Sequence[ir.Value | None]) -> Any:
    """aten::index.Tensor(Tensor self, Tensor?[] indices), with numpy's rules: None keeps a dim, a mask counts for each of its dims."""
    assert self.shape is not None
    positions: list[ir.Value | None] = []
    for each in indices:
        positions += _positions(each) if each is not None and each.dtype in _MASKS else [each]
    axes = [axis for axis, each in enumerate(positions) if each is not None]
    picked = [each for each in positions if each is not None]
    if len(picked) == 1:
        return op.Gather(self, picked[0], axis=axes[0])
    rest = [axis for axis in range(len(self.shape)) if axis not in axes]
    ranks = [len(each.shape) for each in picked if each.shape is not None]
    rank = max(ranks)
    tuples = op.Concat(*(op.Unsqueeze(each, [-1]) for each in _broadcast(picked)), axis=-1)
    result = op.GatherND(op.Transpose(self, perm=[*axes, *rest]), tuples)
    if axes[-1] - axes[0] + 1 > len(axes):
        # Dims that are kept between the picked ones: the new dims come first.
        return result
    before = axes[0]
    return op.Transpose(result, perm=[*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))])


def _positions(mask: ir.Value) -> list[ir.Value | None]:
    """The positions of a mask's true elements, for each of its dims."""
    assert mask.shape is not None
    rows = op.NonZero(mask)
    made: list[ir.Value | None] = []
    for axis in range(len(mask.shape)):
        row: Any = op.Gather(rows, axis, axis=0)
        row.shape = ir.Shape([None])
        made.append(row)
    return made


def _broadcast(values: Sequence[Any]) -> list[Any]:
    first = values[0].shape
    if None not in first.dims and all(value.shape == first for value in values):
        return list(values)
    zeros = functools.reduce(op.Add, (op.Mul(value, op.CastLike(0, value)) for value in values))
    shape = op.Shape(zeros)
    return [op.Expand(value, shape) for value in values]
