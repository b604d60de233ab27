"""Activations."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onnxplain.recording import current, op

from . import translates


@translates("aten::gelu")
def gelu(self: ir.Value, approximate: str = "none") -> Any:
    """aten::gelu(Tensor self, *, str approximate="none") -> Tensor. From opset 20 on ONNX has an operator for it."""
    if current().opset >= 20:
        return op.Gelu(self, approximate=approximate)
    if approximate == "tanh":
        cubic = op.Mul(0.044715, op.Mul(self, op.Mul(self, self)))
        inner = op.Tanh(op.Mul(math.sqrt(2 / math.pi), op.Add(self, cubic)))
    else:
        inner = op.Erf(op.Mul(self, math.sqrt(0.5)))
    return op.Mul(op.Mul(self, 0.5), op.Add(inner, 1.0))


@translates("aten::leaky_relu")
def leaky_relu(self: ir.Value, negative_slope: Any = 0.01) -> Any:
    """aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor. The slope may depend on a size."""
    if _is_attribute(negative_slope, self):
        return op.LeakyRelu(self, alpha=float(negative_slope))
    return op.Where(op.Less(self, 0.0), op.Mul(self, _like(negative_slope, self)), self)


@translates("aten::elu")
def elu(self: ir.Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    """aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor. The scalars may depend on sizes."""
    if _is_attribute(alpha, self) and input_scale == 1:
        result = op.Elu(self, alpha=float(alpha))
        return result if scale == 1 else op.Mul(result, _like(scale, self))
    negative = op.Mul(op.Sub(op.Exp(op.Mul(self, _like(input_scale, self))), 1.0), _like(alpha, self))
    return op.Mul(op.Where(op.Greater(self, 0.0), self, negative), _like(scale, self))


@translates("aten::celu")
def celu(self: ir.Value, alpha: Any = 1.0) -> Any:
    """aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor. `alpha` may depend on a size. ONNX has Celu for FLOAT only."""
    if not _is_attribute(alpha, self):
        return elu(self, alpha, 1.0, op.Div(op.CastLike(1.0, self), _like(alpha, self)))
    return op.CastLike(op.Celu(op.Cast(self, to=int(ir.DataType.FLOAT)), alpha=float(alpha)), self)


def _is_attribute(number: Any, tensor: ir.Value) -> bool:
    """Whether an operator of ONNX takes `number` for `tensor`: it is a constant, and ONNX Runtime has such operators, but not of DOUBLE."""
    return not isinstance(number, ir.Value) and tensor.dtype is not ir.DataType.DOUBLE


def _like(number: Any, tensor: ir.Value) -> Any:
    """A number, or a scalar that depends on a size, in the dtype of `tensor`."""
    return op.CastLike(number, tensor) if isinstance(number, ir.Value) else float(number)
