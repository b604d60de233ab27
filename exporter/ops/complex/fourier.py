"""Fourier transforms."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.ops import emit
from onnxplain.recording import current, op

from .arithmetic import conj, mul
from .representation import axes, number, rank, real, real_only, size, translates_complex


@translates_complex("aten::_fft_c2c")
def fft_c2c(self: ir.Value, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor."""
    transformed = axes(self, dim) if dim else []
    result = self
    for axis in transformed:
        result = _dft(result, axis, inverse=not forward)
    return _normalized(result, [size(self, axis) for axis in transformed], normalization, forward=forward)


@translates_complex("aten::_fft_r2c")
def fft_r2c(self: ir.Value, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor. The transform of a real tensor.

    If `onesided`, the last of the dims has size N // 2 + 1 instead of N. It is transformed first.
    """
    value = op.Unsqueeze(self, [-1])
    assert self.shape is not None
    value.shape = ir.Shape([*self.shape, 1])
    *others, last = axes(value, dim)
    result = _dft(value, last, onesided=onesided)
    for axis in others:
        result = _dft(result, axis)
    return _normalized(result, [size(value, axis) for axis in (*others, last)], normalization, forward=True)


@translates_complex("aten::_fft_c2r")
def fft_c2r(self: ir.Value, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
    """aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor. The inverse transform as a real tensor.

    `self` is the first half of a transform along the last of the dims; the second half mirrors it, conjugated. In the result that dim has
    size `last_dim_size`.
    """
    *others, last = axes(self, dim)
    sizes = [*(size(self, axis) for axis in others), last_dim_size]
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


@translates_complex("aten::stft")
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
    """aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, ...) -> Tensor.

    A signal (..., T) gives (..., F, frames) with F = n_fft, or n_fft // 2 + 1 if `onesided`. The frames are gathered by positions. The pass
    `promote` has made real signals complex, and has set `onesided`. The result is pairs of numbers with `return_complex` and without.

    Raises:
        ValueError: `onesided` is not given, or `align_to_window` is.
    """
    del return_complex
    if onesided is None or align_to_window:
        raise ValueError("stft is translated with onesided given, and without align_to_window")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    signal, given = real_only(self), None if window is None else real_only(window)
    if signal is not None and (window is None or given is not None):
        result = _stft_of_real(signal, rank(self) == 2, n_fft, hop, length, given, onesided)
        return result if not normalized else op.Mul(result, float(n_fft) ** -0.5)
    axis = rank(self) - 1
    first = op.Range(0, op.Sub(size(self, axis), n_fft - 1), hop)
    positions = op.Add(op.Unsqueeze(first, [1]), op.Constant(value=ir.tensor(np.arange(n_fft))))
    frames = op.Gather(self, positions, axis=axis)
    if window is None and length < n_fft:
        window = op.Expand(number(1, self), [length, 2])
    if window is not None:
        before = (n_fft - length) // 2
        frames = mul(frames, op.Pad(window, [before, n_fft - length - before], None, [0]))
    result = _dft(frames, axis + 1)
    if onesided:
        result = op.Slice(result, [0], [n_fft // 2 + 1], [axis + 1])
    order = [*range(axis), axis + 1, axis, axis + 2]
    return op.Mul(op.Transpose(result, perm=order), float(n_fft) ** -0.5 if normalized else 1.0)


def _stft_of_real(signal: Any, has_batch: bool, n_fft: int, hop: int, length: int, window: Any, onesided: bool) -> Any:
    """The transform (..., F, frames) of a signal (..., T, 1) by ONNX's operator. `window` is (length, 1) or None."""
    if window is None and length < n_fft:
        window = op.CastLike(op.Constant(value=ir.tensor(np.ones((length, 1), dtype=np.float32))), signal)
    if window is not None:
        before = (n_fft - length) // 2
        window = op.Squeeze(window if length == n_fft else op.Pad(window, [before, n_fft - length - before], None, [0]), [-1])
    frames = op.STFT(signal if has_batch else op.Unsqueeze(signal, [0]), hop, window, n_fft, onesided=int(onesided))
    return op.Transpose(frames, perm=[0, 2, 1, 3]) if has_batch else op.Transpose(op.Squeeze(frames, [0]), perm=[1, 0, 2])


def _dft(value: ir.Value, axis: int, inverse: bool = False, onesided: bool = False) -> Any:
    """ONNX's transform along an axis; its inverse divides by the number of elements. It requires a batch dim."""
    attributes: dict[str, Any] = {"inverse": int(inverse), "onesided": int(onesided)}
    batched = op.Unsqueeze(value, [0])
    if current().opset >= 20:
        (result,) = emit("DFT", [batched, None, axis + 1], attributes, 1, opset=20)
    else:
        (result,) = emit("DFT", [batched], {**attributes, "axis": axis + 1}, 1)
    return op.Squeeze(result, [0])


def _normalized(value: Any, sizes: Sequence[Any], normalization: int, *, forward: bool) -> Any:
    """Divides by the number of elements where `normalization` is 2, by its root where it is 1. ONNX's inverse has divided already."""
    power = (0.0 if forward else 1.0) - (0.0, 0.5, 1.0)[normalization]
    if power == 0 or not sizes:
        return value
    if all(isinstance(size, int) for size in sizes):
        return op.Mul(value, float(math.prod(sizes)) ** power)
    count = functools.reduce(op.Mul, sizes)
    return op.Mul(value, op.Pow(op.CastLike(count, value), op.CastLike(power, value)))
