"""Random numbers and dropout. The runtime generates them: no seed gives the numbers that PyTorch draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import translates
from .casts import cast
from .creation import full


@translates("aten::multinomial")
def multinomial(self: ir.Value, num_samples: int, replacement: bool = False) -> Any:
    """aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor.

    Weights (N) or (B, N) give INT64 positions (S) or (B, S).

    Without replacement, the positions of the largest weights after noise of Gumbel's distribution (Vieira, 2014).
    """
    assert self.shape is not None
    single = len(self.shape) == 1
    scores = op.Log(op.Unsqueeze(self, [0]) if single else self)
    if num_samples > 1 and not replacement:
        noise = op.RandomUniformLike(scores, low=1e-30, dtype=int(ir.DataType.FLOAT))
        noise = op.CastLike(op.Neg(op.Log(op.Neg(op.Log(noise)))), scores)
        _, drawn = op.TopK(op.Add(scores, noise), [num_samples])
    else:
        drawn = op.Multinomial(scores, dtype=int(ir.DataType.INT64), sample_size=num_samples)
    return op.Squeeze(drawn, [0]) if single else drawn


@translates("aten::bernoulli")
def bernoulli(self: ir.Value) -> Any:
    """aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor: 1 with the probabilities `self`, and 0 otherwise."""
    # NOTE: ONNX Runtime's Bernoulli compares the other way round (read in 1.31).
    return op.CastLike(op.Less(op.RandomUniformLike(self, dtype=int(ir.DataType.FLOAT)), op.Cast(self, to=int(ir.DataType.FLOAT))), self)


@translates("aten::bernoulli.Tensor")
def bernoulli_of_other(self: ir.Value, p: ir.Value) -> Any:
    """aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor: the shape of `self`, probabilities `p`."""
    assert self.dtype is not None
    return op.Cast(bernoulli(op.Expand(p, op.Shape(self))), to=int(self.dtype))


@translates("aten::uniform")
def uniform(self: ir.Value, from_: float = 0.0, to: float = 1.0) -> Any:
    """aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor."""
    assert self.dtype is not None
    # NOTE: ONNX Runtime draws no FLOAT16.
    drawn = op.RandomUniformLike(self, low=from_, high=to, dtype=int(ir.DataType.FLOAT))
    return cast(drawn, int(self.dtype))


@translates("aten::rand_like")
def rand_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::rand_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor: uniform in [0, 1). In `dtype` if it is given."""
    return _drawn("RandomUniformLike", self, dtype)


@translates("aten::randn_like")
def randn_like(self: ir.Value, dtype: int = -1) -> Any:
    """aten::randn_like(Tensor self, *, ScalarType? dtype=None, ...) -> Tensor: normally distributed. In `dtype` if it is given."""
    return _drawn("RandomNormalLike", self, dtype)


def _drawn(name: str, like: ir.Value, dtype: int | None = None, **attributes: float) -> Any:
    assert like.dtype is not None
    wanted = int(like.dtype) if dtype in (None, -1) else int(dtype)
    # NOTE: ONNX Runtime draws no FLOAT16, ONNX no ints, and no BFLOAT16 before opset 22.
    direct = wanted in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    drawn = getattr(op, name)(like, dtype=wanted if direct else int(ir.DataType.FLOAT), **attributes)
    return drawn if direct else cast(drawn, wanted)


@translates("aten::rand")
def rand(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::rand(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor: uniform in [0, 1). Of shape `size`."""
    return _of_size("RandomUniformLike", size, dtype)


@translates("aten::randn")
def randn(size: Sequence[Any], dtype: int = -1) -> Any:
    """aten::randn(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor: normally distributed. Of shape `size`."""
    return _of_size("RandomNormalLike", size, dtype)


def _of_size(name: str, size: Sequence[Any], dtype: int | None) -> Any:
    return _drawn(name, full(size, 0.0, int(ir.DataType.FLOAT)), dtype)


@translates("aten::normal_functional")
def normal_functional(self: ir.Value, mean: float = 0.0, std: float = 1.0) -> Any:
    """aten::normal_functional(Tensor self, float mean=0., float std=1., ...) -> Tensor: of the shape and dtype of `self`."""
    return _drawn("RandomNormalLike", self, mean=mean, scale=std)


@translates("aten::normal.Tensor_float", "aten::normal.Tensor_Tensor")
def normal_around(mean: ir.Value, std: Any = 1.0) -> Any:
    """aten::normal.Tensor_Tensor(Tensor mean, Tensor std, ...) -> Tensor: normally distributed, of the shape of `mean + std`."""
    std = op.CastLike(std, mean)
    return op.Add(op.Mul(_drawn("RandomNormalLike", op.Add(mean, std)), std), mean)


@translates("aten::normal.float_Tensor")
def normal_of_deviations(mean: float, std: ir.Value) -> Any:
    """aten::normal.float_Tensor(float mean, Tensor std, ...) -> Tensor: normally distributed, of the shape of `std`."""
    return op.Add(op.Mul(_drawn("RandomNormalLike", std), std), op.CastLike(mean, std))


@translates("aten::dropout", is_complex=None)
def dropout(input: ir.Value, p: float, train: bool) -> Any:
    """aten::dropout(Tensor input, float p, bool train) -> Tensor. In evaluation it returns its input."""
    return _dropped(input, p, channels=False) if train and p else input


@translates("aten::feature_dropout", is_complex=None)
def feature_dropout(input: ir.Value, p: float, train: bool) -> Any:
    """aten::feature_dropout(Tensor input, float p, bool train) -> Tensor. It drops whole channels of the input (N, C, ...)."""
    return _dropped(input, p, channels=True) if train and p else input


def _dropped(value: ir.Value, p: float, *, channels: bool) -> Any:
    # NOTE: ONNX Runtime removes a Dropout in training mode as well, unless its input is an input of the model (seen in 1.31).
    factor = op.Where(_kept(value, p, channels=channels), op.CastLike(1 / (1 - p) if p < 1 else 0.0, value), op.CastLike(0.0, value))
    return op.Mul(value, factor)


@translates("aten::alpha_dropout", is_complex=None)
def alpha_dropout(input: ir.Value, p: float, train: bool) -> Any:
    """aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor. It keeps mean 0 and variance 1."""
    return _alpha_dropped(input, p, channels=False) if train and p else input


@translates("aten::feature_alpha_dropout", is_complex=None)
def feature_alpha_dropout(input: ir.Value, p: float, train: bool) -> Any:
    """aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor. `alpha_dropout` of whole channels (N, C, ...)."""
    return _alpha_dropped(input, p, channels=True) if train and p else input


def _alpha_dropped(value: ir.Value, p: float, *, channels: bool) -> Any:
    """Replaces dropped elements by the limit of SELU, then scales and shifts (Klambauer et al., Self-Normalizing Neural Networks, 2017)."""
    if p == 1:
        return op.Mul(value, op.CastLike(0.0, value))
    limit = -1.7580993408473766
    scale = 1 / math.sqrt((limit**2 * p + 1) * (1 - p))
    kept = op.Where(_kept(value, p, channels=channels), value, op.CastLike(limit, value))
    return op.Add(op.Mul(kept, op.CastLike(scale, value)), op.CastLike(-limit * p * scale, value))


def _kept(like: ir.Value, p: float, *, channels: bool) -> Any:
    """Which elements are kept, or which channels: BOOL, of the shape of `like` (N, C, ...) or (N, C, 1, ...)."""
    template: Any = like
    if channels:
        assert like.shape is not None
        inner = op.Constant(value_ints=[1] * (len(like.shape) - 2))
        template = op.Expand(op.CastLike(0.0, like), op.Concat(op.Shape(like, end=2), inner, axis=0))
    return op.Less(op.RandomUniformLike(template, dtype=int(ir.DataType.FLOAT)), 1.0 - p)
