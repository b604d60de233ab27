"""How complex tensors are represented, and translations that convert from and to the parts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.ops import emit, translates
from onnxplain.ops.casts import cast
from onnxplain.recording import op, small_constant, uniform_number

REAL_DTYPES = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}
"""The dtype of the parts, by complex dtype."""

translates_complex = functools.partial(translates, is_complex=True)


def parts(value: Any) -> tuple[Any, Any]:
    """The real and the imaginary part, each with a last dim of size 1."""
    real, imaginary = emit("Split", [value, [1, 1]], {"axis": -1}, outputs=2)
    return real, imaginary


def pair(real: Any, imaginary: Any) -> Any:
    """The complex tensor of two parts, which have a last dim of size 1."""
    return op.Concat(real, imaginary, axis=-1)


def real_only(value: ir.Value) -> Any:
    """The real part, with a last dim of size 1, of a complex tensor that is known to have no imaginary part; None for others."""
    known = small_constant(value)
    if known is not None:
        return op.Constant(value=ir.tensor(known[..., :1])) if (known[..., 1] == 0).all() else None
    made = value.producer()
    if made is None or made.op_type != "Concat" or len(made.inputs) != 2:
        return None
    real, imaginary = made.inputs
    return real if imaginary is not None and uniform_number(imaginary) == 0 else None


def without_last(part: Any) -> Any:
    """A part without its last dim of size 1."""
    return op.Squeeze(part, [-1])


def number(value: complex | ir.Value, like: ir.Value) -> Any:
    """A number as a complex scalar, shape (2), with the dtype of `like`. A value stays as it is."""
    if isinstance(value, ir.Value):
        return value
    assert like.dtype is not None
    return op.Constant(value=ir.tensor(np.array([value.real, value.imag], dtype=like.dtype.numpy())))


def operands(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands, one of which may be a number, as values."""
    like = a if isinstance(a, ir.Value) else b
    return number(a, like), number(b, like)


def zero(part: ir.Value) -> Any:
    """The real number 0 in the dtype of `part`."""
    return op.CastLike(0.0, part)


def rank(value: ir.Value) -> int:
    """The number of dims that PyTorch sees."""
    assert value.shape is not None
    return len(value.shape) - 1


def axis(value: ir.Value, dim: int) -> int:
    """A dim as PyTorch sees it, counted from the front. PyTorch lets a scalar have one dim."""
    return dim % max(rank(value), 1)


def axes(value: ir.Value, dims: Sequence[int] | None) -> list[int]:
    """Dims as PyTorch sees them, counted from the front. No dims stand for all dims."""
    return [axis(value, dim) for dim in dims] if dims else list(range(rank(value)))


def size(value: ir.Value, axis: int) -> Any:
    """The size of a dim: an int, or an INT64 scalar where it is dynamic."""
    assert value.shape is not None
    known = value.shape[axis]
    return known if isinstance(known, int) else op.Squeeze(op.Shape(value, start=axis, end=axis + 1))


@translates_complex("aten::real")
def real(self: ir.Value) -> Any:
    """aten::real(Tensor self) -> Tensor. A real tensor of the same shape."""
    return op.Gather(self, 0, axis=-1)


@translates_complex("aten::imag")
def imag(self: ir.Value) -> Any:
    """aten::imag(Tensor self) -> Tensor. A real tensor of the same shape."""
    return op.Gather(self, 1, axis=-1)


@translates_complex("aten::view_as_real", "aten::view_as_real_copy", "aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_real(self: ir.Value) -> ir.Value:
    """aten::view_as_real(Tensor self) -> Tensor.

    A complex tensor (...) is a real one (..., 2) already, and the other way round for view_as_complex.
    """
    return self


@translates("aten::resolve_conj", "aten::resolve_neg", "aten::positive", is_complex=None)
def same(self: ir.Value) -> ir.Value:
    """aten::resolve_conj(Tensor self) -> Tensor. It changes memory, not values."""
    return self


@translates_complex("aten::complex")
def make(real: ir.Value, imag: ir.Value) -> Any:
    """aten::complex(Tensor real, Tensor imag) -> Tensor. The complex tensor of the shape that the parts broadcast to."""
    unsqueezed = [op.Unsqueeze(each, [-1]) for each in _broadcast(real, imag)]
    return pair(*unsqueezed)


@translates_complex("aten::polar")
def polar(abs: ir.Value, angle: ir.Value) -> Any:
    """aten::polar(Tensor abs, Tensor angle) -> Tensor. The complex tensor of the shape that the two broadcast to."""
    return make(op.Mul(abs, op.Cos(angle)), op.Mul(abs, op.Sin(angle)))


def _broadcast(a: ir.Value, b: ir.Value) -> tuple[Any, Any]:
    # NOTE: the same name is the same size, but dims without a name are not known to be equal.
    if a.shape is not None and a.shape == b.shape and all(isinstance(size, int) or size.value is not None for size in a.shape):
        return a, b
    return op.Expand(a, op.Shape(b)), op.Expand(b, op.Shape(a))


@translates_complex("aten::_to_copy", "aten::to.dtype", "prims::convert_element_type")
def to_dtype(self: ir.Value | complex, dtype: int = -1) -> Any:
    """aten::to.dtype(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor.

    The same shape in another dtype. A real dtype gets the real part; BOOL is whether the number is not 0. torch.vmap converts numbers.
    """
    if dtype in (None, -1):
        return self
    kind = ir.DataType(dtype)
    if not isinstance(self, ir.Value):
        return op.Constant(value=ir.tensor(np.array([self.real, self.imag], dtype=REAL_DTYPES[kind].numpy())))
    if kind is ir.DataType.BOOL:
        return op.Not(equal(self, number(0, self)))
    return cast(self, int(REAL_DTYPES[kind])) if kind in REAL_DTYPES else cast(real(self), dtype)


@translates_complex("aten::to.dtype_layout")
def to_dtype_layout(self: ir.Value, *, dtype: int = -1) -> Any:
    """aten::to.dtype_layout(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, ...) -> Tensor.

    As `to_dtype`.
    """
    return to_dtype(self, dtype)


@translates_complex("aten::to.device")
def to_device(self: ir.Value, device: str, dtype: int) -> Any:
    """aten::to.device(Tensor self, Device device, ScalarType dtype, ...) -> Tensor.

    As `to_dtype`.
    """
    del device
    return to_dtype(self, dtype)


def equal(a: Any, b: Any) -> Any:
    """Whether both parts are equal: BOOL, of the shape that PyTorch sees."""
    same_parts = op.Cast(op.Equal(a, b), to=int(ir.DataType.INT32))
    return op.Cast(op.ReduceMin(same_parts, [-1], keepdims=0), to=int(ir.DataType.BOOL))
