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
