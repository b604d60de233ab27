"""Complex tensors: real ones with a last dim of size 2, the real and the imaginary part. What PyTorch calls the last dim is the last but
one here. Operands are complex throughout, numbers aside: the pass `promote` has made them so."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import current, op

from . import creation, emit, indexing, shapes, symbolic, translates
from .casts import cast

_REAL = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}

_complex = functools.partial(translates, is_complex=True)


# Parts and pairs


def _parts(value: Any) -> tuple[Any, Any]:
    """The real and the imaginary part, each with a last dim of size 1."""
    real, imaginary = emit("Split", [value, [1, 1]], {"axis": -1}, outputs=2)
    return real, imaginary


def _pair(real: Any, imaginary: Any) -> Any:
    """A complex tensor of its parts, which have a last dim of size 1."""
    return op.Concat(real, imaginary, axis=-1)


def _bare(part: Any) -> Any:
    """A real tensor of a part."""
    return op.Squeeze(part, [-1])


def _number(value: complex | ir.Value, like: ir.Value) -> Any:
    """A number as a complex tensor without dims of its own."""
    if isinstance(value, ir.Value):
        return value
    assert like.dtype is not None
    return op.Constant(value=ir.tensor(np.array([value.real, value.imag], dtype=like.dtype.numpy())))


def _operands(a: Any, b: Any) -> tuple[Any, Any]:
    like = a if isinstance(a, ir.Value) else b
    return _number(a, like), _number(b, like)


def _zero(part: ir.Value) -> Any:
    return op.CastLike(0.0, part)


def _rank(value: ir.Value) -> int:
    assert value.shape is not None
    return len(value.shape) - 1


def _axis(value: ir.Value, dim: int) -> int:
    """A dim of a complex tensor, counted from the front. A scalar has one dim."""
    return dim % max(_rank(value), 1)


def _axes(value: ir.Value, dims: int | Sequence[int] | None) -> list[int]:
    """Dims counted from the front; no dims are all dims."""
    if isinstance(dims, int):
        dims = [dims]
    return [_axis(value, dim) for dim in dims] if dims else list(range(_rank(value)))


@_complex("aten::real")
def real(self: ir.Value) -> Any:
    """aten::real(Tensor self)."""
    return op.Gather(self, 0, axis=-1)


@_complex("aten::imag")
def imag(self: ir.Value) -> Any:
    """aten::imag(Tensor self)."""
    return op.Gather(self, 1, axis=-1)


@_complex("aten::view_as_real", "aten::view_as_real_copy", "aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_real(self: ir.Value) -> ir.Value:
    """aten::view_as_real(Tensor self): the same values with another name."""
    return self


@translates("aten::resolve_conj", "aten::resolve_neg", "aten::positive", is_complex=None)
def same(self: ir.Value) -> ir.Value:
    """aten::resolve_conj(Tensor self): a matter of memory."""
    return self


@_complex("aten::complex")
def make(real: ir.Value, imag: ir.Value) -> Any:
    """aten::complex(Tensor real, Tensor imag)."""
    parts = [op.Unsqueeze(each, [-1]) for each in _broadcast(real, imag)]
    return _pair(*parts)


@_complex("aten::polar")
def polar(abs: ir.Value, angle: ir.Value) -> Any:
    """aten::polar(Tensor abs, Tensor angle)."""
    return make(op.Mul(abs, op.Cos(angle)), op.Mul(abs, op.Sin(angle)))


def _broadcast(a: ir.Value, b: ir.Value) -> tuple[Any, Any]:
    if a.shape is not None and a.shape == b.shape and all(isinstance(size, int) for size in a.shape):
        return a, b
    return op.Expand(a, op.Shape(b)), op.Expand(b, op.Shape(a))


@_complex("aten::_to_copy", "aten::to.dtype", "prims::convert_element_type")
def to_dtype(self: ir.Value, dtype: int = -1) -> Any:
    """aten::to.dtype(Tensor self, ScalarType dtype, bool non_blocking, bool copy, MemoryFormat? memory_format): a real dtype takes the
    real part."""
    if dtype in (None, -1):
        return self
    kind = ir.DataType(dtype)
    if kind is ir.DataType.BOOL:
        return op.Not(_equal(self, _number(0, self)))
    return cast(self, int(_REAL[kind])) if kind in _REAL else cast(real(self), dtype)


@_complex("aten::to.dtype_layout")
def to_dtype_layout(self: ir.Value, *, dtype: int = -1) -> Any:
    """aten::to.dtype_layout(Tensor self, *, ScalarType? dtype, Layout? layout, Device? device, ...)."""
    return to_dtype(self, dtype)


@_complex("aten::to.device")
def to_device(self: ir.Value, device: str, dtype: int = -1) -> Any:
    """aten::to.device(Tensor self, Device device, ScalarType dtype, ...)."""
    del device
    return to_dtype(self, dtype)


# Arithmetic


@_complex("aten::add.Tensor", "aten::add.Scalar")
def add(self: Any, other: Any, alpha: complex = 1) -> Any:
    """aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha): self + alpha * other."""
    self, other = _operands(self, other)
    return op.Add(self, other if alpha == 1 else mul(other, alpha))


@_complex("aten::sub.Tensor", "aten::sub.Scalar")
def sub(self: Any, other: Any, alpha: complex = 1) -> Any:
    """aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha): self - alpha * other."""
    self, other = _operands(self, other)
    return op.Sub(self, other if alpha == 1 else mul(other, alpha))


@_complex("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(self: Any, other: Any, alpha: complex = 1) -> Any:
    """aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha): other - alpha * self."""
    return sub(_number(other, self), self, alpha)


@_complex("aten::mul.Tensor", "aten::mul.Scalar")
def mul(self: Any, other: Any) -> Any:
    """aten::mul.Tensor(Tensor self, Tensor other)."""
    if isinstance(other, int | float):
        return op.Mul(self, other)
    (a, b), (c, d) = map(_parts, _operands(self, other))
    return _pair(op.Sub(op.Mul(a, c), op.Mul(b, d)), op.Add(op.Mul(a, d), op.Mul(b, c)))


@_complex("aten::square")
def square(self: ir.Value) -> Any:
    """aten::square(Tensor self)."""
    return mul(self, self)


@_complex("aten::div.Tensor", "aten::div.Scalar")
def div(self: Any, other: Any) -> Any:
    """aten::div.Tensor(Tensor self, Tensor other)."""
    if isinstance(other, int | float):
        return op.Div(self, other)
    self, other = _operands(self, other)
    return mul(self, reciprocal(other))


@_complex("aten::reciprocal")
def reciprocal(self: ir.Value) -> Any:
    """aten::reciprocal(Tensor self): conj(z) / |z|^2, of z by its larger part, whose square may not overflow."""
    scale = op.ReduceMax(op.Abs(self), [-1], keepdims=1)
    scaled = op.Div(self, scale)
    return op.Div(op.Div(conj(scaled), scale), op.ReduceSumSquare(scaled, [-1], keepdims=1))


@_complex("aten::neg", "aten::_neg_view", "aten::_neg_view_copy")
def neg(self: ir.Value) -> Any:
    """aten::neg(Tensor self)."""
    return op.Neg(self)


@_complex("aten::conj", "aten::_conj", "aten::_conj_copy", "aten::_conj_physical", "aten::conj_physical")
def conj(self: ir.Value) -> Any:
    """aten::conj(Tensor self)."""
    return op.Mul(self, _number(1 - 1j, self))


@_complex("aten::abs")
def absolute(self: ir.Value) -> Any:
    """aten::abs(Tensor self)."""
    return _bare(_absolute(self))


def _absolute(value: ir.Value) -> Any:
    return op.Sqrt(op.ReduceSumSquare(value, [-1], keepdims=1))


@_complex("aten::angle")
def angle(self: ir.Value) -> Any:
    """aten::angle(Tensor self): in [-pi, pi]."""
    return _bare(_angle(self))


def _angle(value: ir.Value) -> Any:
    """The arc tangent of the quotient of the parts, in the right quadrant."""
    x, y = _parts(value)
    zero = _zero(x)
    upright = op.Equal(x, zero)
    # NOTE: 1 / -0 is below zero.
    below = op.Or(op.Less(y, zero), op.Less(op.Reciprocal(y), zero))
    half = op.Where(below, op.CastLike(-math.pi, x), op.CastLike(math.pi, x))
    slope = op.Atan(op.Div(y, op.Where(upright, op.CastLike(1.0, x), x)))
    to_the_right = op.Where(op.Less(x, zero), op.Add(slope, half), slope)
    return op.Where(upright, op.Mul(op.Sign(y), op.CastLike(math.pi / 2, x)), to_the_right)


@_complex("aten::sgn")
def sgn(self: ir.Value) -> Any:
    """aten::sgn(Tensor self): z / |z|, and 0 for 0."""
    size = _absolute(self)
    return op.Div(self, op.Where(op.Equal(size, _zero(size)), op.CastLike(1.0, size), size))


@_complex("aten::exp")
def exp(self: ir.Value) -> Any:
    """aten::exp(Tensor self)."""
    a, b = _parts(self)
    return op.Mul(op.Exp(a), _turned(b))


def _turned(part: Any) -> Any:
    """The number of size 1 at an angle."""
    return _pair(op.Cos(part), op.Sin(part))


@_complex("aten::expm1")
def expm1(self: ir.Value) -> Any:
    """aten::expm1(Tensor self)."""
    return sub(exp(self), 1)


@_complex("aten::log")
def log(self: ir.Value) -> Any:
    """aten::log(Tensor self)."""
    return _pair(op.Log(_absolute(self)), _angle(self))


@_complex("aten::log1p")
def log1p(self: ir.Value) -> Any:
    """aten::log1p(Tensor self)."""
    return log(add(self, 1))


@_complex("aten::log2")
def log2(self: ir.Value) -> Any:
    """aten::log2(Tensor self)."""
    return op.Mul(log(self), 1 / math.log(2))


@_complex("aten::log10")
def log10(self: ir.Value) -> Any:
    """aten::log10(Tensor self)."""
    return op.Mul(log(self), 1 / math.log(10))


@_complex("aten::sqrt")
def sqrt(self: ir.Value) -> Any:
    """aten::sqrt(Tensor self): the root whose real part is not negative. The larger part comes first, the other one by a quotient."""
    a, b = _parts(self)
    zero = _zero(a)
    larger = op.Sqrt(op.Mul(op.Add(_absolute(self), op.Abs(a)), 0.5))
    smaller = op.Div(op.Mul(op.Abs(b), 0.5), op.Where(op.Equal(larger, zero), op.CastLike(1.0, larger), larger))
    right = op.Not(op.Less(a, zero))
    below = op.Or(op.Less(b, zero), op.Less(op.Reciprocal(b), zero))
    size = op.Where(right, smaller, larger)
    return _pair(op.Where(right, larger, smaller), op.Where(below, op.Neg(size), size))


@_complex("aten::rsqrt")
def rsqrt(self: ir.Value) -> Any:
    """aten::rsqrt(Tensor self)."""
    return reciprocal(sqrt(self))


@_complex("aten::sigmoid")
def sigmoid(self: ir.Value) -> Any:
    """aten::sigmoid(Tensor self)."""
    return reciprocal(add(exp(op.Neg(self)), 1))


def _hyperbolic(part: Any) -> tuple[Any, Any]:
    """cosh and sinh."""
    grown, shrunk = op.Exp(part), op.Exp(op.Neg(part))
    return op.Mul(op.Add(grown, shrunk), 0.5), op.Mul(op.Sub(grown, shrunk), 0.5)


@_complex("aten::sin")
def sin(self: ir.Value) -> Any:
    """aten::sin(Tensor self): sin a cosh b + i cos a sinh b."""
    a, b = _parts(self)
    cosh_b, sinh_b = _hyperbolic(b)
    return _pair(op.Mul(op.Sin(a), cosh_b), op.Mul(op.Cos(a), sinh_b))


@_complex("aten::cos")
def cos(self: ir.Value) -> Any:
    """aten::cos(Tensor self): cos a cosh b - i sin a sinh b."""
    a, b = _parts(self)
    cosh_b, sinh_b = _hyperbolic(b)
    return _pair(op.Mul(op.Cos(a), cosh_b), op.Neg(op.Mul(op.Sin(a), sinh_b)))


@_complex("aten::sinh")
def sinh(self: ir.Value) -> Any:
    """aten::sinh(Tensor self): sinh a cos b + i cosh a sin b."""
    a, b = _parts(self)
    cosh_a, sinh_a = _hyperbolic(a)
    return _pair(op.Mul(sinh_a, op.Cos(b)), op.Mul(cosh_a, op.Sin(b)))


@_complex("aten::cosh")
def cosh(self: ir.Value) -> Any:
    """aten::cosh(Tensor self): cosh a cos b + i sinh a sin b."""
    a, b = _parts(self)
    cosh_a, sinh_a = _hyperbolic(a)
    return _pair(op.Mul(cosh_a, op.Cos(b)), op.Mul(sinh_a, op.Sin(b)))


@_complex("aten::tanh")
def tanh(self: ir.Value) -> Any:
    """aten::tanh(Tensor self): with t = tanh a, (t (1 + tan(b)^2) + i tan(b) (1 - t^2)) / (1 + t^2 tan(b)^2), by cos(b)^2."""
    a, b = _parts(self)
    t, s, c = op.Tanh(a), op.Sin(b), op.Cos(b)
    below = op.Add(op.Mul(c, c), op.Mul(op.Mul(t, t), op.Mul(s, s)))
    return op.Div(_pair(t, op.Mul(op.Mul(s, c), op.Sub(op.CastLike(1.0, t), op.Mul(t, t)))), below)


@_complex("aten::tan")
def tan(self: ir.Value) -> Any:
    """aten::tan(Tensor self): -i tanh(i z)."""
    a, b = _parts(tanh(mul(self, 1j)))
    return _pair(b, op.Neg(a))


@_complex("aten::pow.Tensor_Scalar")
def power_scalar(self: ir.Value, exponent: complex) -> Any:
    """aten::pow.Tensor_Scalar(Tensor self, Scalar exponent): by products for an int."""
    if isinstance(exponent, complex):
        return power(self, _number(exponent, self))
    if float(exponent).is_integer() and abs(exponent) <= _PRODUCTS:
        result = _product(self, abs(int(exponent)))
        return reciprocal(result) if exponent < 0 else result
    return op.Mul(op.Pow(_absolute(self), float(exponent)), _turned(op.Mul(_angle(self), float(exponent))))


_PRODUCTS = 64
"""The largest exponent that is computed by products."""


def _product(value: ir.Value, count: int) -> Any:
    if count == 0:
        return op.Expand(_number(1, value), op.Shape(value))
    half = value if count == 1 else _product(value, count // 2)
    whole = half if count == 1 else mul(half, half)
    return mul(whole, value) if count > 1 and count % 2 else whole


@_complex("aten::pow.Tensor_Tensor", "aten::pow.Scalar")
def power(self: Any, exponent: ir.Value) -> Any:
    """aten::pow.Tensor_Tensor(Tensor self, Tensor exponent): exp(exponent * log(self)); 0 ** 0 is 1, and other powers of 0 are 0."""
    base = _number(self, exponent)
    result = exp(mul(exponent, log(base)))
    one, zero = _number(1, exponent), _number(0, exponent)
    of_zero = op.Where(op.Unsqueeze(_equal(exponent, zero), [-1]), one, zero)
    return op.Where(op.Unsqueeze(_equal(base, zero), [-1]), of_zero, result)


# Comparisons and choices


def _equal(a: Any, b: Any) -> Any:
    same = op.Cast(op.Equal(a, b), to=int(ir.DataType.INT32))
    return op.Cast(op.ReduceMin(same, [-1], keepdims=0), to=int(ir.DataType.BOOL))


@_complex("aten::eq.Tensor", "aten::eq.Scalar")
def eq(self: Any, other: Any) -> Any:
    """aten::eq.Tensor(Tensor self, Tensor other)."""
    return _equal(*_operands(self, other))


@_complex("aten::ne.Tensor", "aten::ne.Scalar")
def ne(self: Any, other: Any) -> Any:
    """aten::ne.Tensor(Tensor self, Tensor other)."""
    return op.Not(eq(self, other))


@_complex("aten::logical_not")
def logical_not(self: ir.Value) -> Any:
    """aten::logical_not(Tensor self)."""
    return eq(self, 0)


@_complex("aten::isnan")
def isnan(self: ir.Value) -> Any:
    """aten::isnan(Tensor self): if one of the parts is."""
    return op.Or(*map(_bare, _parts(op.IsNaN(self))))


@_complex("aten::where.self", "aten::where.ScalarOther", "aten::where.ScalarSelf", "aten::where.Scalar")
def where(condition: ir.Value, self: Any, other: Any) -> Any:
    """aten::where.self(Tensor condition, Tensor self, Tensor other)."""
    if not isinstance(self, ir.Value) and not isinstance(other, ir.Value):
        raise ValueError("where of two complex numbers has no dtype")
    return op.Where(op.Unsqueeze(condition, [-1]), *_operands(self, other))


@_complex("aten::masked_fill.Scalar", "aten::masked_fill.Tensor")
def masked_fill(self: ir.Value, mask: ir.Value, value: Any) -> Any:
    """aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)."""
    return op.Where(op.Unsqueeze(mask, [-1]), _number(value, self), self)


# Reductions


@_complex("aten::sum.dim_IntList", "aten::sum")
def sum_(self: ir.Value, dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim, *, ScalarType? dtype)."""
    return _reduced("ReduceSum", to_dtype(self, dtype), dim, keepdim)


@_complex("aten::mean.dim", "aten::mean")
def mean(self: ir.Value, dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: int = -1) -> Any:
    """aten::mean.dim(Tensor self, int[1]? dim, bool keepdim, *, ScalarType? dtype)."""
    return _reduced("ReduceMean", to_dtype(self, dtype), dim, keepdim)


def _reduced(name: str, value: ir.Value, dim: int | Sequence[int] | None, keepdim: bool) -> Any:
    return getattr(op, name)(value, _axes(value, dim), keepdims=int(keepdim)) if _rank(value) else value


@_complex("aten::cumsum")
def cumsum(self: ir.Value, dim: int, dtype: int = -1) -> Any:
    """aten::cumsum(Tensor self, int dim, *, ScalarType? dtype)."""
    value = to_dtype(self, dtype)
    return op.CumSum(value, _axis(value, dim)) if _rank(value) else value


# Products of matrices


@_complex("aten::matmul")
def matmul(self: ir.Value, other: ir.Value) -> Any:
    """aten::matmul(Tensor self, Tensor other), with numpy's rules for one and for many dims."""
    (a, b), (c, d) = (tuple(map(_bare, _parts(each))) for each in (self, other))
    real = op.Sub(op.MatMul(a, c), op.MatMul(b, d))
    imaginary = op.Add(op.MatMul(a, d), op.MatMul(b, c))
    return _pair(op.Unsqueeze(real, [-1]), op.Unsqueeze(imaginary, [-1]))


@_complex("aten::mm", "aten::bmm")
def mm(self: ir.Value, mat2: ir.Value) -> Any:
    """aten::mm(Tensor self, Tensor mat2), of matrices; aten::bmm, of batches of them."""
    return matmul(self, mat2)


@_complex("aten::mv")
def mv(self: ir.Value, vec: ir.Value) -> Any:
    """aten::mv(Tensor self, Tensor vec)."""
    return matmul(self, vec)


@_complex("aten::dot")
def dot(self: ir.Value, tensor: ir.Value) -> Any:
    """aten::dot(Tensor self, Tensor tensor)."""
    return matmul(self, tensor)


# Views and cuts


@_complex("aten::reshape")
def reshape(self: ir.Value, shape: Sequence[Any]) -> Any:
    """aten::reshape(Tensor self, SymInt[] shape)."""
    return shapes.view(self, [*shape, 2])


@_complex("aten::view", "aten::view_copy", "aten::_unsafe_view")
def view(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::view(Tensor self, SymInt[] size)."""
    return shapes.view(self, [*size, 2])


@_complex("aten::flatten.using_ints")
def flatten(self: ir.Value, start_dim: int = 0, end_dim: int = -1) -> Any:
    """aten::flatten.using_ints(Tensor self, int start_dim, int end_dim)."""
    return shapes.flatten(self, _axis(self, start_dim), _axis(self, end_dim)) if _rank(self) else op.Unsqueeze(self, [0])


@_complex("aten::transpose.int")
def transpose(self: ir.Value, dim0: int, dim1: int) -> Any:
    """aten::transpose.int(Tensor self, int dim0, int dim1)."""
    return shapes.transpose(self, _axis(self, dim0), _axis(self, dim1))


@_complex("aten::t")
def t(self: ir.Value) -> Any:
    """aten::t(Tensor self): of a matrix; a vector stays."""
    return shapes.transpose(self, 0, 1) if _rank(self) == 2 else self


@_complex("aten::permute")
def permute(self: ir.Value, dims: Sequence[int]) -> Any:
    """aten::permute(Tensor self, int[] dims)."""
    return op.Transpose(self, perm=[*(_axis(self, dim) for dim in dims), _rank(self)])


@_complex("aten::unsqueeze")
def unsqueeze(self: ir.Value, dim: int) -> Any:
    """aten::unsqueeze(Tensor self, int dim)."""
    return op.Unsqueeze(self, [dim % (_rank(self) + 1)])


@_complex("aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims")
def squeeze(self: ir.Value, dim: int | Sequence[int] | None = None) -> Any:
    """aten::squeeze.dims(Tensor self, int[] dim): without those of the dims, or of all, whose size is 1."""
    dims = range(_rank(self)) if dim is None else [dim] if isinstance(dim, int) else dim
    return shapes.squeeze(self, [_axis(self, each) for each in dims]) if _rank(self) else self


@_complex("aten::expand")
def expand(self: ir.Value, size: Sequence[Any]) -> Any:
    """aten::expand(Tensor self, SymInt[] size, *, bool implicit)."""
    return shapes.expand(self, [*size, 2])


@_complex("aten::repeat")
def repeat(self: ir.Value, repeats: Sequence[Any]) -> Any:
    """aten::repeat(Tensor self, SymInt[] repeats): more repeats than dims are for new dims in front."""
    new = list(range(len(repeats) - _rank(self)))
    return op.Tile(op.Unsqueeze(self, new) if new else self, [*repeats, 1])


@_complex("aten::slice.Tensor")
def slice_(self: ir.Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """aten::slice.Tensor(Tensor self, int dim, SymInt? start, SymInt? end, SymInt step)."""
    return shapes.slice_(self, _axis(self, dim), start, end, step)


@_complex("aten::select.int")
def select(self: ir.Value, dim: int, index: Any) -> Any:
    """aten::select.int(Tensor self, int dim, SymInt index)."""
    return op.Gather(self, index, axis=_axis(self, dim))


@_complex("aten::index_select")
def index_select(self: ir.Value, dim: int, index: ir.Value) -> Any:
    """aten::index_select(Tensor self, int dim, Tensor index): of a vector of positions."""
    assert index.shape is not None
    if not _rank(self):
        return self
    return op.Gather(self, index if len(index.shape) else op.Unsqueeze(index, [0]), axis=_axis(self, dim))


@_complex("aten::gather")
def gather(self: ir.Value, dim: int, index: ir.Value, sparse_grad: bool = False) -> Any:
    """aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad)."""
    del sparse_grad
    if not _rank(self):
        return op.Expand(self, op.Concat(op.Shape(index), [2], axis=0))
    both = op.Concat(*[op.Unsqueeze(index, [-1])] * 2, axis=-1)
    return op.GatherElements(self, both, axis=_axis(self, dim))


@_complex("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(self: ir.Value, indices: Sequence[ir.Value | None]) -> Any:
    """aten::index.Tensor(Tensor self, Tensor?[] indices)."""
    return indexing.index(self, indices)


@_complex("aten::cat")
def cat(tensors: Sequence[ir.Value], dim: int = 0) -> Any:
    """aten::cat(Tensor[] tensors, int dim). PyTorch leaves out tensors of shape (0,), whatever the others' rank."""
    kept = [each for each in tensors if each.shape != (0, 2)] or tensors[:1]
    return op.Concat(*kept, axis=_axis(kept[0], dim))


@_complex("aten::stack")
def stack(tensors: Sequence[ir.Value], dim: int = 0) -> Any:
    """aten::stack(Tensor[] tensors, int dim)."""
    axis = dim % (_rank(tensors[0]) + 1)
    return op.Concat(*(op.Unsqueeze(each, [axis]) for each in tensors), axis=axis)


@_complex("aten::split.Tensor", "aten::split_copy.Tensor", "aten::unsafe_split.Tensor")
def split(self: ir.Value, split_size: Any, dim: int = 0) -> Any:
    """aten::split.Tensor(Tensor self, SymInt split_size, int dim)."""
    return shapes.split(self, split_size, _axis(self, dim))


@_complex("aten::split.sizes")
def split_sizes(self: ir.Value, split_size: Sequence[Any], dim: int = 0) -> Any:
    """aten::split.sizes(Tensor self, SymInt[] split_size, int dim)."""
    return shapes.split_with_sizes(self, split_size, _axis(self, dim))


@_complex("aten::split_with_sizes", "aten::split_with_sizes_copy")
def split_with_sizes(self: ir.Value, split_sizes: Sequence[Any], dim: int = 0) -> Any:
    """aten::split_with_sizes(Tensor self, SymInt[] split_sizes, int dim)."""
    return shapes.split_with_sizes(self, split_sizes, _axis(self, dim))


@_complex("aten::unbind.int")
def unbind(self: ir.Value, dim: int = 0) -> Any:
    """aten::unbind.int(Tensor self, int dim)."""
    return shapes.unbind(self, _axis(self, dim))


@_complex("aten::flip")
def flip(self: ir.Value, dims: Sequence[int]) -> Any:
    """aten::flip(Tensor self, int[] dims)."""
    axes = [_axis(self, dim) for dim in dims] if _rank(self) else []
    if not axes:
        return self
    return op.Slice(self, [-1] * len(axes), [-(2**63)] * len(axes), axes, [-1] * len(axes))


@_complex("aten::roll")
def roll(self: ir.Value, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """aten::roll(Tensor self, SymInt[1] shifts, int[1] dims): no dims are the flat tensor's only one."""
    if not dims:
        return op.Reshape(_rolled(op.Reshape(self, [-1, 2]), shifts[0], 0), op.Shape(self))
    return functools.reduce(lambda value, each: _rolled(value, *each), zip(shifts, _axes(self, dims), strict=True), self)


def _rolled(value: Any, shift: Any, axis: int) -> Any:
    size = op.Shape(value, start=axis, end=axis + 1)
    cut = op.Mod(op.Neg(shift) if isinstance(shift, ir.Value) else op.Constant(value_ints=[-shift]), size)
    return op.Concat(op.Slice(value, cut, size, [axis]), op.Slice(value, [0], cut, [axis]), axis=axis)


@_complex("aten::constant_pad_nd")
def constant_pad_nd(self: ir.Value, pad: Sequence[Any], value: complex = 0) -> Any:
    """aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value): sizes before and after, the last dim first."""
    if isinstance(value, complex) and value.imag:
        raise ValueError("a padding of complex numbers is not translated: pad with a real number")
    pairs = [(pad[position], pad[position + 1]) for position in range(0, len(pad), 2)][::-1]
    axes = range(_rank(self) - len(pairs), _rank(self))
    sizes = [before for before, _ in pairs] + [after for _, after in pairs]
    if value:
        inside = op.Pad(op.Gather(self, 0, axis=-1), sizes, value.real, list(axes))
        return make(inside, op.Pad(op.Gather(self, 1, axis=-1), sizes, None, list(axes)))
    return op.Pad(self, sizes, None, list(axes))


@_complex("aten::sym_size.int")
def sym_size(self: ir.Value, dim: int) -> Any:
    """aten::sym_size.int(Tensor self, int dim): a scalar."""
    return symbolic.sym_size(self, _axis(self, dim))


@_complex("aten::sym_numel")
def sym_numel(self: ir.Value) -> Any:
    """aten::sym_numel(Tensor self): a scalar."""
    return op.Div(op.Size(self), 2)


# Creation


@_complex("aten::full")
def full(size: Sequence[Any], fill_value: Any, dtype: int = -1) -> Any:
    """aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype, ...)."""
    return op.Expand(_filler(fill_value, dtype), [*size, 2])


@_complex("aten::zeros", "aten::empty.memory_format")
def zeros(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::zeros(SymInt[] size, *, ScalarType? dtype, ...). What has no values yet gets these."""
    return full(size, 0, dtype)


@_complex("aten::ones")
def ones(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::ones(SymInt[] size, *, ScalarType? dtype, ...)."""
    return full(size, 1, dtype)


@_complex("aten::new_full")
def new_full(self: ir.Value, size: Sequence[Any], fill_value: Any, dtype: int = -1) -> Any:
    """aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype, ...)."""
    return full(size, fill_value, _or_own(dtype, self)) if _is_complex(dtype) else creation.full(size, fill_value, dtype)


@_complex("aten::new_zeros", "aten::new_empty")
def new_zeros(self: ir.Value, size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype, ...)."""
    return new_full(self, size, 0, dtype)


@_complex("aten::new_ones")
def new_ones(self: ir.Value, size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype, ...)."""
    return new_full(self, size, 1, dtype)


@_complex("aten::full_like")
def full_like(self: ir.Value, fill_value: Any, dtype: int = -1) -> Any:
    """aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype, ...)."""
    if _is_complex(dtype):
        return op.Expand(_filler(fill_value, _or_own(dtype, self)), op.Shape(self))
    return creation.full_like(real(self), fill_value, dtype)


@_complex("aten::zeros_like", "aten::empty_like")
def zeros_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::zeros_like(Tensor self, *, ScalarType? dtype, ...)."""
    return full_like(self, 0, dtype)


@_complex("aten::ones_like")
def ones_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::ones_like(Tensor self, *, ScalarType? dtype, ...)."""
    return full_like(self, 1, dtype)


@_complex("aten::scalar_tensor")
def scalar_tensor(s: Any, dtype: int = -1) -> Any:
    """aten::scalar_tensor(Scalar s, *, ScalarType? dtype, ...)."""
    return _filler(s, dtype)


def _is_complex(dtype: int | None) -> bool:
    return dtype in (-1, None) or ir.DataType(dtype) in _REAL


def _or_own(dtype: int | None, value: ir.Value) -> int:
    if dtype not in (-1, None):
        return int(dtype)
    return int(ir.DataType.COMPLEX128 if value.dtype is ir.DataType.DOUBLE else ir.DataType.COMPLEX64)


def _filler(number: Any, dtype: int | None) -> Any:
    """A number as a complex tensor without dims of its own. Without a dtype it is single."""
    kind = ir.DataType.FLOAT if dtype in (-1, None) else _REAL[ir.DataType(dtype)]
    if isinstance(number, ir.Value):
        value = op.Unsqueeze(cast(number, int(kind)), [0])
        return _pair(value, op.CastLike(op.Constant(value=ir.tensor(np.zeros(1, dtype=np.float32))), value))
    return op.Constant(value=ir.tensor(np.array([number.real, number.imag], dtype=kind.numpy())))


# Fourier transforms


@_complex("aten::_fft_c2c")
def fft_c2c(self: ir.Value, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward)."""
    result = self
    for axis in _axes(self, dim) if dim else []:
        result = _dft(result, axis, inverse=not forward)
    return _normalized(result, [_size(self, axis) for axis in _axes(self, dim)] if dim else [], normalization, forward=forward)


@_complex("aten::_fft_r2c")
def fft_r2c(self: ir.Value, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided): of a real tensor; along the last of the dims, which is
    transformed first, half of the results may do."""
    value = op.Unsqueeze(self, [-1])
    assert self.shape is not None
    value.shape = ir.Shape([*self.shape, 1])
    *others, last = _axes(value, dim)
    result = _dft(value, last, onesided=onesided)
    for axis in others:
        result = _dft(result, axis)
    return _normalized(result, [_size(value, axis) for axis in (*others, last)], normalization, forward=True)


@_complex("aten::_fft_c2r")
def fft_c2r(self: ir.Value, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
    """aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size): a real tensor of its transform's half along the
    last of the dims. The other half mirrors it, conjugated."""
    *others, last = _axes(self, dim)
    sizes = [*(_size(self, axis) for axis in others), last_dim_size]
    for axis in others:
        self = _dft(self, axis, inverse=True)
    if isinstance(last_dim_size, int):
        half, mirrored = last_dim_size // 2 + 1, (last_dim_size - 1) // 2
    else:
        half, mirrored = op.Add(op.Div(last_dim_size, 2), 1), op.Div(op.Sub(last_dim_size, 1), 2)
    first = op.Slice(self, [0], [half], [last], [1])
    second = op.Slice(conj(self), [mirrored], [0], [last], [-1])
    whole = _dft(op.Concat(first, second, axis=last), last, inverse=True)
    return real(_normalized(whole, sizes, normalization, forward=False))


@_complex("aten::stft")
def stft(
    self: ir.Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: ir.Value | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """aten::stft(Tensor self, int n_fft, int? hop_length, int? win_length, Tensor? window, bool normalized, bool? onesided,
    bool? return_complex, bool? align_to_window): the transforms of frames, which are cut out by positions. The pass `promote` has made
    real signals complex ones, and says by `onesided` that half of their transform does."""
    if onesided is None or not return_complex or align_to_window:
        raise ValueError("stft is translated with onesided and return_complex given, and without align_to_window")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    axis = _rank(self) - 1
    first = op.Range(0, op.Sub(_size(self, axis), n_fft - 1), hop)
    positions = op.Add(op.Unsqueeze(first, [1]), op.Constant(value=ir.tensor(np.arange(n_fft))))
    frames = op.Gather(self, positions, axis=axis)
    if window is None and length < n_fft:
        window = op.Expand(_number(1, self), [length, 2])
    if window is not None:
        before = (n_fft - length) // 2
        frames = mul(frames, op.Pad(window, [before, n_fft - length - before], None, [0]))
    result = _dft(frames, axis + 1)
    if onesided:
        result = op.Slice(result, [0], [n_fft // 2 + 1], [axis + 1])
    order = [*range(axis), axis + 1, axis, axis + 2]
    return op.Mul(op.Transpose(result, perm=order), float(n_fft) ** -0.5 if normalized else 1.0)


def _dft(value: ir.Value, axis: int, inverse: bool = False, onesided: bool = False) -> Any:
    """ONNX's transform along an axis, which by its inverse divides by the number of elements. It wants a dim for the batch."""
    attributes: dict[str, Any] = {"inverse": int(inverse), "onesided": int(onesided)}
    batched = op.Unsqueeze(value, [0])
    if current().opset >= 20:
        (result,) = emit("DFT", [batched, None, axis + 1], attributes, 1, opset=20)
    else:
        (result,) = emit("DFT", [batched], {**attributes, "axis": axis + 1}, 1)
    return op.Squeeze(result, [0])


def _normalized(value: Any, sizes: Sequence[Any], normalization: int, *, forward: bool) -> Any:
    """By the number of elements or its root, where `normalization` is 2 or 1; ONNX's inverse has been divided by it."""
    power = (0.0 if forward else 1.0) - (0.0, 0.5, 1.0)[normalization]
    if power == 0 or not sizes:
        return value
    if all(isinstance(size, int) for size in sizes):
        return op.Mul(value, float(math.prod(sizes)) ** power)
    count = functools.reduce(op.Mul, sizes)
    return op.Mul(value, op.Pow(op.CastLike(count, value), op.CastLike(power, value)))


def _size(value: ir.Value, axis: int) -> Any:
    assert value.shape is not None
    size = value.shape[axis]
    return size if isinstance(size, int) else op.Squeeze(op.Shape(value, start=axis, end=axis + 1))
