"""Picking elements by tensors of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript.function_libs.torch_lib.ops import core
from onnxscript.onnx_opset import opset18 as op

from . import translates


@translates("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(self: ir.Value, indices: Sequence[ir.Value | None]) -> Any:
    """aten::index.Tensor(Tensor self, Tensor?[] indices). One tensor of positions is a Gather, which is faster than torchlib's GatherND."""
    wanted = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if len(wanted) == 1 and wanted[0][1].dtype in (ir.DataType.INT64, ir.DataType.INT32):
        ((axis, positions),) = wanted
        return op.Gather(self, positions, axis=axis)
    return core.aten_index(self, indices)
