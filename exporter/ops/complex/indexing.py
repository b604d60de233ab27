"""Picking elements of complex tensors by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.ops import indexing
from onnxplain.recording import op

from .representation import axis, equal, number, rank, translates_complex


@translates_complex("aten::select.int")
def select(self: ir.Value, dim: int, index: Any) -> Any:
    """aten::select.int(Tensor self, int dim, SymInt index) -> Tensor. Without `dim`."""
    return op.Gather(self, index, axis=axis(self, dim))


@translates_complex("aten::index_select")
def index_select(self: ir.Value, dim: int, index: ir.Value) -> Any:
    """aten::index_select(Tensor self, int dim, Tensor index) -> Tensor. `index` (K), or a scalar for K = 1; `dim` has size K."""
    assert index.shape is not None
    if not rank(self):
        return self
    return op.Gather(self, index if len(index.shape) else op.Unsqueeze(index, [0]), axis=axis(self, dim))


@translates_complex("aten::gather")
def gather(self: ir.Value, dim: int, index: ir.Value, sparse_grad: bool = False) -> Any:
    """aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor. Of the shape of `index`."""
    del sparse_grad
    if not rank(self):
        return op.Expand(self, op.Concat(op.Shape(index), [2], axis=0))
    both = op.Concat(*[op.Unsqueeze(index, [-1])] * 2, axis=-1)
    return op.GatherElements(self, both, axis=axis(self, dim))


@translates_complex("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(self: ir.Value, indices: Sequence[ir.Value | None]) -> Any:
    """aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor. As for real tensors: the last dim of size 2 is not indexed."""
    return indexing.index(self, indices)


@translates_complex("aten::nonzero")
def nonzero(self: ir.Value) -> Any:
    """aten::nonzero(Tensor self) -> Tensor. The positions of all elements that are not 0: INT64 (count, rank)."""
    flags = op.Not(equal(self, number(0, self)))
    assert self.shape is not None
    flags.shape = ir.Shape(list(self.shape)[:-1])
    return indexing.nonzero(flags)


@translates_complex("aten::nonzero_static")
def nonzero_static(self: ir.Value, size: Any, fill_value: int = -1) -> Any:
    """aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor. (size, rank)."""
    flags = op.Not(equal(self, number(0, self)))
    assert self.shape is not None
    flags.shape = ir.Shape(list(self.shape)[:-1])
    return indexing.nonzero_static(flags, size, fill_value)
