"""How far apart two correct results of an operator that adds may be: sums round with the size of what is added, not of the result."""

from __future__ import annotations

import dataclasses

import torch

from onnxplain.registry import qualified_name
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.operators import OpOverload
from onnxplain.torch_internals.python_values import is_a
from onnxplain.weights import as_real

from .calls import Call

_UNITS = 16
"""How many units of rounding of the absolute values' sum an element may be from the exact one. Sums of numbers of both signs are within a
few; those of one sign, which may be further off, are as large as their result, and the tolerance covers them."""
_PRODUCTS = frozenset(
    {
        *("aten::sum", "aten::mean", "aten::cumsum", "aten::mm", "aten::bmm", "aten::matmul", "aten::linear", "aten::dot", "aten::mv"),
        *("aten::addmm", "aten::baddbmm", "aten::addbmm", "aten::addmv", "aten::convolution", "aten::einsum", "aten::tensordot"),
        *("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"),
        *("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d", "aten::adaptive_avg_pool1d", "aten::_adaptive_avg_pool2d"),
        *("aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d", "aten::_adaptive_avg_pool3d", "aten::col2im", "aten::trapezoid"),
        *("aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d", "aten::index_add", "aten::scatter_add"),
    }
)
"""Operators whose result is a sum of products of numbers of their arguments."""
_TRANSFORMS = frozenset({"aten::_fft_r2c", "aten::_fft_c2r", "aten::_fft_c2c", "aten::stft", "aten::istft"})
"""Operators that add the numbers of an argument with factors of both signs: each element adds all of them."""


def is_rounding_of_sums(got: torch.Tensor, exact: torch.Tensor, call: Call) -> bool:
    """Whether `got` is as near to the exact result as sums of numbers of that size are.

    Args:
        got: The result of ONNX Runtime.
        exact: That of PyTorch in float64.
        call: The operator's call with the same values.
    """
    size = _size(call)
    got, exact = as_real(got), as_real(exact)
    if size is None or not got.is_floating_point() or got.shape != exact.shape:
        return False
    size = size.unsqueeze(-1) if size.dim() < exact.dim() else size
    allowed = _UNITS * torch.finfo(got.dtype).eps / 2 * size
    return bool(((got.double() - exact).abs() <= allowed).all())


def _size(call: Call) -> torch.Tensor | None:
    """The operator's result for the absolute values of all numbers, in float64; None if it does not add, or refuses them."""
    name = qualified_name(call.target) if isinstance(call.target, OpOverload) else ""
    if name not in _PRODUCTS | _TRANSFORMS:
        return None
    args, kwargs = pytree.tree_map(_absolute, (list(call.args), dict(call.kwargs)))
    result = dataclasses.replace(call, args=args, kwargs=kwargs).in_double()
    if result is None:
        return None
    size = result.abs()
    return size.amax().expand_as(size) if name in _TRANSFORMS and size.numel() else size


def _absolute(value: object) -> object:
    if not is_a(value, torch.Tensor):
        return value
    assert isinstance(value, torch.Tensor)
    return value.abs().to(value.dtype) if value.is_floating_point() or value.is_complex() else value
