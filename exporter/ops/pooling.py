"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recorder import op

from . import translates


@translates("aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d")
def adaptive_avg_pool(self: ir.Value, output_size: Sequence[int]) -> Any:
    """aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size).

    Output i of k along a dim of size n is the mean over floor(i*n/k) to ceil((i+1)*n/k). Raises ValueError where n is not fixed and k is
    not 1: how many elements a mean has then is known at run time only.
    """
    assert self.shape is not None
    first = len(self.shape) - len(output_size)
    if all(size == 1 for size in output_size):
        if first == 2:
            return op.GlobalAveragePool(self)
        return op.ReduceMean(self, list(range(first, len(self.shape))), keepdims=1)
    sizes = list(self.shape)[first:]
    for size, wanted in zip(sizes, output_size, strict=True):
        if not isinstance(size, int) and wanted != 1:
            raise ValueError(f"adaptive pooling to {wanted} needs a dim of fixed size, not {size}")
    if first == 2 and all(isinstance(size, int) and size % wanted == 0 for size, wanted in zip(sizes, output_size, strict=True)):
        window = [size // wanted for size, wanted in zip(sizes, output_size, strict=True)]
        return op.AveragePool(self, kernel_shape=window, strides=window)
    result: Any = self
    for axis, (size, wanted) in enumerate(zip(sizes, output_size, strict=True), start=first):
        if wanted == 1:
            result = op.ReduceMean(result, [axis], keepdims=1)
        elif wanted != size:
            bounds = [(index * size // wanted, -(-(index + 1) * size // wanted)) for index in range(wanted)]
            parts = [op.ReduceMean(op.Slice(result, [start], [end], [axis]), [axis], keepdims=1) for start, end in bounds]
            result = op.Concat(*parts, axis=axis)
    return result
