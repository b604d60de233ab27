"""The dtypes and shapes of ONNX values, taken from the fake values that the capture left on FX nodes."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype

from onnxplain.recording import SIZE
from onnxplain.request import DimNames


class ValueTypes:
    """Gives ONNX values their dtypes and shapes.

    Args:
        dim_names: The names of dynamic dims.
    """

    def __init__(self, dim_names: DimNames) -> None:
        self._dim_names = dim_names

    def assign(self, value: ir.Value, fake: Any) -> ir.Value:
        """Gives `value` the dtype and shape of a fake value, if it has any; returns `value`.

        Complex tensors become real ones with a last dim of size 2.
        """
        dtype = dtype_of(fake)
        if dtype is not None:
            value.type = ir.TensorType(dtype)
            shape = list(getattr(fake, "shape", ()))
            if isinstance(fake, torch.Tensor) and fake.is_complex():
                shape.append(2)
            value.shape = ir.Shape([self._dim_names.of(dim) for dim in shape])
            if isinstance(fake, torch.SymInt):
                value.meta[SIZE] = fake
        return value


def dtype_of(fake: Any) -> ir.DataType | None:
    """The ONNX dtype for a fake value; None if it is neither a tensor nor a number."""
    match fake:
        case torch.Tensor() if fake.is_complex():
            return from_torch_dtype(fake.dtype.to_real())
        case torch.Tensor():
            return from_torch_dtype(fake.dtype)
        case torch.SymBool() | bool():
            return ir.DataType.BOOL
        case torch.SymInt() | int():
            return ir.DataType.INT64
        case torch.SymFloat() | float():
            return ir.DataType.FLOAT
        case _:
            return None
