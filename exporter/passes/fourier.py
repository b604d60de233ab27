"""Decompositions of Fourier transforms into the three that have translations.

torch's decompositions compare sizes and then either cut or pad, so that a dynamic size is right only on one side of the comparison. Some
take no dynamic sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.operators import FFT_C2C, FFT_C2R, FFT_R2C, OpOverload

_NAMES = {None: 0, "backward": 0, "ortho": 1, "forward": 2}


def _mode(norm: str | None, forward: bool) -> int:
    """The number by which ATen's operators tell what to divide by: 0 for nothing, 1 for the root of the number of elements, 2 for it."""
    return _NAMES[norm] if forward else 2 - _NAMES[norm]


def _floating(x: Tensor) -> Tensor:
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.get_default_dtype())


def _resized(x: Tensor, dim: int, size: Any) -> Tensor:
    """`x` with `size` elements along `dim`: cut, or filled with zeros. None keeps the size."""
    known = x.shape[dim]
    if size is None or (isinstance(size, int) and isinstance(known, int) and size == known):
        return x
    if not isinstance(size, int) or not isinstance(known, int) or size > known:
        fill = size - known if isinstance(size, int) and isinstance(known, int) else size
        zeros = torch.ops.aten.new_zeros.default(x, [*x.shape[:dim], fill, *x.shape[dim + 1 :]])
        x = torch.cat([x, zeros], dim)
    made: Tensor = torch.ops.aten.slice.Tensor(x, dim, 0, size)
    return made


def _dims(x: Tensor, s: Sequence[Any] | None, dim: Sequence[int] | None) -> tuple[list[Any], list[int]]:
    """The sizes, None where they stay, and the dims counted from the front."""
    dims = list(range(x.ndim))[-len(s) :] if dim is None and s is not None else list(range(x.ndim)) if dim is None else list(dim)
    dims = [each % x.ndim for each in dims]
    sizes = [None] * len(dims) if s is None else [None if isinstance(each, int) and each == -1 else each for each in s]
    return sizes, dims


def _complex(forward: bool, x: Tensor, s: Sequence[Any] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The transform of complex or real numbers to complex ones."""
    x = _floating(x)
    sizes, dims = _dims(x, s, dim)
    for each, size in zip(dims, sizes, strict=True):
        x = _resized(x, each, size)
    if x.is_complex():
        whole: Tensor = FFT_C2C(x, dims, _mode(norm, forward), forward)
        return whole
    made: Tensor = FFT_R2C(x, dims, _mode(norm, forward), False)
    return made if forward else made.conj()


def _from_real(
    forward: bool, x: Tensor, s: Sequence[Any] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """The first half of the transform of real numbers."""
    x = _floating(x)
    sizes, dims = _dims(x, s, dim)
    for each, size in zip(dims, sizes, strict=True):
        x = _resized(x, each, size)
    made: Tensor = FFT_R2C(x, dims, _mode(norm, forward), True)
    return made if forward else made.conj()


def _to_real(forward: bool, x: Tensor, s: Sequence[Any] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The real numbers whose transform has `x` as its first half."""
    x = _floating(x)
    x = x if x.is_complex() else x.to(x.dtype.to_complex())
    sizes, dims = _dims(x, s, dim)
    last = sizes[-1]
    halves = [*sizes[:-1], None if last is None else last // 2 + 1]
    for each, size in zip(dims, halves, strict=True):
        x = _resized(x, each, size)
    last = 2 * (x.shape[dims[-1]] - 1) if last is None else last
    x = x.conj() if forward else x
    # NOTE: torch's shape functions fail for several dims of dynamic size (seen in torch 2.13).
    for each in dims[:-1]:
        x = FFT_C2C(x, [each], _mode(norm, forward), False)
    made: Tensor = FFT_C2R(x, dims[-1:], _mode(norm, forward), last)
    return made


def _of_one(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(self: Tensor, n: Any = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return transform(self, None if n is None else [n], [dim], norm)

    return call


def _of_two(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(self: Tensor, s: Sequence[Any] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
        return transform(self, s, dim, norm)

    return call


def _of_many(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(self: Tensor, s: Sequence[Any] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
        return transform(self, s, dim, norm)

    return call


def _decompositions() -> dict[OpOverload, Callable[..., Any]]:
    transforms = {
        "fft": functools.partial(_complex, True),
        "ifft": functools.partial(_complex, False),
        "rfft": functools.partial(_from_real, True),
        "irfft": functools.partial(_to_real, False),
        "hfft": functools.partial(_to_real, True),
        "ihfft": functools.partial(_from_real, False),
    }
    made = {f"fft_{name}{suffix}": of(each) for name, each in transforms.items() for suffix, of in _DIMS.items()}
    return {getattr(torch.ops.aten, name).default: each for name, each in made.items()}


_DIMS = {"": _of_one, "2": _of_two, "n": _of_many}
DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = _decompositions()
"""The decompositions by operator."""
