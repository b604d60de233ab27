"""Views and cuts of complex tensors, and how they are joined. Sizes are those that PyTorch sees: without the last dim of size 2."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.ops import shapes, symbolic
from onnxplain.recording import op

from .representation import axes, axis, make, rank, translates_complex


@translates_complex("aten::reshape")
def reshape(self: ir.Value, shape: Sequence[Any]) -> Any:
    """aten::reshape(Tensor self, SymInt[] shape) -> Tensor. Of that shape."""
    return shapes.view(self, [*shape, 2])


@translates_complex("aten::view", "aten::view_copy", "aten::_unsafe_view")
def view(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::view(Tensor self, SymInt[] size) -> Tensor. Of shape `size`."""
    return shapes.view(self, [*size, 2])


@translates_complex("aten::flatten.using_ints")
def flatten(self: ir.Value, start_dim: int = 0, end_dim: int = -1) -> Any:
    """aten::flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor.

    The dims from `start_dim` to `end_dim` become one; a scalar becomes (1).
    """
    return shapes.flatten(self, axis(self, start_dim), axis(self, end_dim)) if rank(self) else op.Unsqueeze(self, [0])


@translates_complex("aten::transpose.int")
def transpose(self: ir.Value, dim0: int, dim1: int) -> Any:
    """aten::transpose.int(Tensor self, int dim0, int dim1) -> Tensor. With the two dims exchanged."""
    return shapes.transpose(self, axis(self, dim0), axis(self, dim1))


@translates_complex("aten::t")
def t(self: ir.Value) -> Any:
    """aten::t(Tensor self) -> Tensor. A matrix (N, M) becomes (M, N); a vector stays."""
    return shapes.transpose(self, 0, 1) if rank(self) == 2 else self


@translates_complex("aten::permute")
def permute(self: ir.Value, dims: Sequence[int]) -> Any:
    """aten::permute(Tensor self, int[] dims) -> Tensor. Dim i of the result is dim `dims[i]` of `self`."""
    return op.Transpose(self, perm=[*(axis(self, dim) for dim in dims), rank(self)])


@translates_complex("aten::unsqueeze")
def unsqueeze(self: ir.Value, dim: int) -> Any:
    """aten::unsqueeze(Tensor self, int dim) -> Tensor. With a new dim of size 1."""
    return op.Unsqueeze(self, [dim % (rank(self) + 1)])


@translates_complex("aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims")
def squeeze(self: ir.Value, dim: int | Sequence[int] | None = None) -> Any:
    """aten::squeeze.dims(Tensor self, int[] dim) -> Tensor. Without those of the dims, or of all dims, whose size is 1."""
    dims = range(rank(self)) if dim is None else [dim] if isinstance(dim, int) else dim
    return shapes.squeeze(self, [axis(self, each) for each in dims]) if rank(self) else self


@translates_complex("aten::broadcast_to", "aten::expand")
def expand(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::expand(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor. Of shape `size`, where -1 keeps a size."""
    return shapes.expand(self, [*size, 2])


@translates_complex("aten::repeat")
def repeat(self: ir.Value, repeats: Sequence[Any]) -> Any:
    """aten::repeat(Tensor self, SymInt[] repeats) -> Tensor.

    Each size is multiplied by its number in `repeats`. Where there are more numbers than dims, new dims of size 1 come first.
    """
    new = list(range(len(repeats) - rank(self)))
    return op.Tile(op.Unsqueeze(self, new) if new else self, [*repeats, 1])


@translates_complex("aten::slice.Tensor")
def slice_(self: ir.Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """aten::slice.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor. `dim` is cut."""
    return shapes.slice_(self, axis(self, dim), start, end, step)


@translates_complex("aten::cat")
def cat(tensors: Sequence[ir.Value], dim: int = 0) -> Any:
    """aten::cat(Tensor[] tensors, int dim=0) -> Tensor. The sizes of `dim` add up.

    PyTorch leaves out tensors of shape (0), whatever the rank of the others.
    """
    kept = [each for each in tensors if each.shape != (0, 2)] or tensors[:1]
    return op.Concat(*kept, axis=axis(kept[0], dim))


@translates_complex("aten::stack")
def stack(tensors: Sequence[ir.Value], dim: int = 0) -> Any:
    """aten::stack(Tensor[] tensors, int dim=0) -> Tensor. With a new dim, whose size is the number of tensors."""
    new = dim % (rank(tensors[0]) + 1)
    return op.Concat(*(op.Unsqueeze(each, [new]) for each in tensors), axis=new)


@translates_complex("aten::split.Tensor", "aten::split_copy.Tensor", "aten::unsafe_split.Tensor")
def split(self: ir.Value, split_size: Any, dim: int = 0) -> Any:
    """aten::split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]. Parts of size `split_size`, the last one smaller."""
    return shapes.split(self, split_size, axis(self, dim))


@translates_complex("aten::split.sizes")
def split_sizes(self: ir.Value, split_size: Sequence[Any], dim: int = 0) -> Any:
    """aten::split.sizes(Tensor self, SymInt[] split_size, int dim=0) -> Tensor[]. One part for each size."""
    return shapes.split_with_sizes(self, split_size, axis(self, dim))


@translates_complex("aten::split_with_sizes", "aten::split_with_sizes_copy")
def split_with_sizes(self: ir.Value, split_sizes: Sequence[Any], dim: int = 0) -> Any:
    """aten::split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]. One part for each size."""
    return shapes.split_with_sizes(self, split_sizes, axis(self, dim))


@translates_complex("aten::unbind.int")
def unbind(self: ir.Value, dim: int = 0) -> Any:
    """aten::unbind.int(Tensor self, int dim=0) -> Tensor[]. The slices along `dim`, which has a fixed size, without that dim."""
    return shapes.unbind(self, axis(self, dim))


@translates_complex("aten::flip")
def flip(self: ir.Value, dims: Sequence[int]) -> Any:
    """aten::flip(Tensor self, int[] dims) -> Tensor."""
    reversed_ = [axis(self, dim) for dim in dims] if rank(self) else []
    if not reversed_:
        return self
    return op.Slice(self, [-1] * len(reversed_), [-(2**63)] * len(reversed_), reversed_, [-1] * len(reversed_))


@translates_complex("aten::roll")
def roll(self: ir.Value, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor. Without dims, the flattened tensor rolls."""
    if not dims:
        return op.Reshape(_rolled(op.Reshape(self, [-1, 2]), shifts[0], 0), op.Shape(self), allowzero=1)
    return functools.reduce(lambda value, each: _rolled(value, *each), zip(shifts, axes(self, dims), strict=True), self)


def _rolled(value: Any, shift: Any, axis: int) -> Any:
    size = op.Shape(value, start=axis, end=axis + 1)
    cut = op.Mod(op.Neg(shift) if isinstance(shift, ir.Value) else op.Constant(value_ints=[-shift]), size)
    return op.Concat(op.Slice(value, cut, size, [axis]), op.Slice(value, [0], cut, [axis]), axis=axis)


@translates_complex("aten::constant_pad_nd")
def constant_pad_nd(self: ir.Value, pad: Sequence[Any], value: complex = 0) -> Any:
    """aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor.

    `pad` has the sizes before and after each dim, beginning with the last dim.

    Raises:
        ValueError: `value` is no real number.
    """
    if isinstance(value, complex) and value.imag:
        raise ValueError("a padding of complex numbers is not translated: pad with a real number")
    pairs = [(pad[position], pad[position + 1]) for position in range(0, len(pad), 2)][::-1]
    padded = list(range(rank(self) - len(pairs), rank(self)))
    sizes = [before for before, _ in pairs] + [after for _, after in pairs]
    if value:
        inside = op.Pad(op.Gather(self, 0, axis=-1), sizes, value.real, padded)
        return make(inside, op.Pad(op.Gather(self, 1, axis=-1), sizes, None, padded))
    return op.Pad(self, sizes, None, padded)


@translates_complex("aten::sym_size.int")
def sym_size(self: ir.Value, dim: int) -> Any:
    """aten::sym_size.int(Tensor self, int dim) -> SymInt. An INT64 scalar."""
    return symbolic.sym_size(self, axis(self, dim))


@translates_complex("aten::sym_numel")
def sym_numel(self: ir.Value) -> Any:
    """aten::sym_numel(Tensor self) -> SymInt. An INT64 scalar."""
    return op.Div(op.Size(self), 2)
