"""Functions of double-precision tensors for which ONNX Runtime has no kernel, or one that computes as floats in between (seen in 1.31)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.decompositions import decomposition_of
from onnxplain.torch_internals.operators import OpOverload, schema

from . import double_windows

_aten = torch.ops.aten

_ATAN_P = (
    *(-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1, -1.228866684490136173410e2),
    -6.485021904942025371773e1,
)
_ATAN_Q = (
    *(1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2, 4.853903996359136964868e2),
    1.945506571482613964425e2,
)
"""The coefficients of a rational function for the arc tangent between 0 and 0.66, the highest power first (Cephes, atan.c)."""


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    value = torch.full_like(x, coefficients[0])
    for each in coefficients[1:]:
        value = value * x + each
    return value


def _atan(self: Tensor) -> Tensor:
    size = self.abs()
    is_far, is_near = size > 1 + math.sqrt(2), size <= 0.66
    reduced = torch.where(is_far, -1 / size, torch.where(is_near, size, (size - 1) / (size + 1)))
    square = reduced * reduced
    angle = reduced + reduced * square * _polynomial(square, _ATAN_P) / _polynomial(square, _ATAN_Q)
    angle = torch.where(is_far, angle + math.pi / 2, torch.where(is_near, angle, angle + math.pi / 4))
    return torch.copysign(angle, self)


def _atan2(self: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (`other`, `self`), also of zeros and infinities with signs."""
    both = (self == 0) & (other == 0) | self.isinf() & other.isinf()
    angle = _atan(torch.where(both, torch.where(self == 0, 0.0, 1.0), self.abs() / other.abs()))
    return torch.copysign(torch.where(other.signbit(), math.pi - angle, angle), self)


def _asin(self: Tensor) -> Tensor:
    return _atan2(self, ((1 - self) * (1 + self)).sqrt())


def _acos(self: Tensor) -> Tensor:
    return _atan2(((1 - self) * (1 + self)).sqrt(), self)


def _sinh(self: Tensor) -> Tensor:
    # NOTE: exp(x) may overflow where sinh(x) does not.
    half = torch.exp(self.abs() / 2)
    far = half / 2 * half
    square = self * self
    near = torch.ones_like(self)
    for term in range(8, 0, -1):
        near = near * square / (2 * term * (2 * term + 1)) + 1
    return torch.where(self.abs() < 1, self * near, torch.copysign(far - 0.25 / far, self))


def _cosh(self: Tensor) -> Tensor:
    half = torch.exp(self.abs() / 2)
    far = half / 2 * half
    return far + 0.25 / far


def _tan(self: Tensor) -> Tensor:
    return self.sin() / self.cos()


def _asinh(self: Tensor) -> Tensor:
    size = self.abs()
    # NOTE: the square of a large number may overflow.
    near = torch.log1p(size + size * size / (1 + (size * size + 1).sqrt()))
    return torch.copysign(torch.where(size > 1e8, size.log() + math.log(2), near), self)


def _acosh(self: Tensor) -> Tensor:
    more = self - 1
    return torch.where(self > 1e8, self.log() + math.log(2), torch.log1p(more + (more * (self + 1)).sqrt()))


def _atanh(self: Tensor) -> Tensor:
    return torch.copysign(torch.log1p(2 * self.abs() / (1 - self.abs())) / 2, self)


def _det(matrix: Tensor) -> Tensor:
    sign, logarithm = torch.linalg.slogdet(matrix)
    determinant: Tensor = sign * logarithm.exp()
    return determinant


_OURS: Mapping[OpOverload, Callable[..., Any]] = {
    **double_windows.DECOMPOSITIONS,
    _aten.acos.default: _acos,
    _aten.acosh.default: _acosh,
    _aten.asin.default: _asin,
    _aten.asinh.default: _asinh,
    _aten.atan.default: _atan,
    _aten.atan2.default: _atan2,
    _aten.atanh.default: _atanh,
    _aten.cosh.default: _cosh,
    _aten.linalg_det.default: _det,
    _aten.sinh.default: _sinh,
    _aten.tan.default: _tan,
}
_TORCHS = ("_prelu_kernel", "gelu", "hardsigmoid", "hardswish", "mish", "prelu", "selu", "softplus")
_RESIZING = ("aten::upsample_", "aten::_upsample_nearest_exact")


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition for a node whose first argument is a FLOAT64 tensor; None for others."""
    target = node.target
    if not isinstance(target, OpOverload) or not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    value = node.args[0].meta.get("val")
    if not isinstance(value, Tensor) or value.dtype is not torch.float64:
        return None
    name = schema(target).name
    is_torchs = name.startswith(_RESIZING) or name.removeprefix("aten::") in _TORCHS
    return _OURS.get(target) or (decomposition_of(target) if is_torchs else None)
