"""Views and cuts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript.onnx_opset import opset18 as op

from . import emit, translates


@translates("aten::view", "aten::view_copy", "aten::_unsafe_view", "aten::reshape")
def view(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::view(Tensor self, SymInt[] size)."""
    symbolic = [position for position, each in enumerate(size) if isinstance(each, ir.Value)]
    known = [each for each in size if not isinstance(each, ir.Value)]
    if len(symbolic) == 1 and all(each > 0 for each in known):
        # One size follows from the others, so that the shape is a constant.
        size = [-1 if position in symbolic else each for position, each in enumerate(size)]
    return op.Reshape(self, size, allowzero=1 if 0 in known else None)


@translates("aten::split_with_sizes", "aten::split_with_sizes_copy", "aten::split.sizes")
def split_with_sizes(self: ir.Value, split_sizes: Sequence[Any], dim: int = 0) -> list[ir.Value]:
    """aten::split_with_sizes(Tensor self, SymInt[] split_sizes, int dim)."""
    if len(split_sizes) == 1:
        return [self]
    return emit("Split", [self, split_sizes], {"axis": dim}, outputs=len(split_sizes))


@translates("aten::unbind.int")
def unbind(self: ir.Value, dim: int = 0) -> Any:
    """aten::unbind.int(Tensor self, int dim). The size along `dim` is known: it is how many results there are."""
    assert self.shape is not None
    size = self.shape[dim]
    if not isinstance(size, int):
        raise ValueError(f"unbind needs a dim of fixed size, dim {dim} has size {size}")
    parts = [self] if size == 1 else emit("Split", [self, [1] * size], {"axis": dim}, outputs=size)
    return [op.Squeeze(part, [dim]) for part in parts]


@translates("aten::split.Tensor", "aten::split_copy.Tensor", "aten::unsafe_split.Tensor")
def split(self: ir.Value, split_size: Any, dim: int = 0) -> Any:
    """aten::split.Tensor(Tensor self, SymInt split_size, int dim). The last part is smaller where the size is no multiple.

    A dim of dynamic size gives an ONNX sequence, whose length is known at run time only.
    """
    assert self.shape is not None
    size = self.shape[dim]
    if not isinstance(size, int) or not isinstance(split_size, int):
        return op.SplitToSequence(self, split_size, axis=dim)
    whole, rest = divmod(size, split_size)
    sizes = [split_size] * whole + [rest] * bool(rest)
    return split_with_sizes(self, sizes, dim)
