"""Python values as ONNX tensors and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

# NOTE: not ir.TensorProtocol: the isinstance check of a typing.Protocol would take longer than everything else that a recorder does.
TENSORS = (ir.Tensor, ir.StringTensor, ir.LazyTensor, ir.ExternalTensor, ir.serde.TensorProtoTensor)

_DTYPES = {bool: ir.DataType.BOOL, int: ir.DataType.INT64, float: ir.DataType.FLOAT, str: ir.DataType.STRING}


def python_dtype(argument: Any) -> ir.DataType:
    """The dtype of a Python value or of a list of them: FLOAT for floats, INT64 for ints. One float makes a list FLOAT."""
    items = argument if isinstance(argument, list | tuple) else [argument]
    dtypes = [item.dtype if isinstance(item, ir.Value) else _DTYPES.get(type(item)) for item in items]
    for dtype in (ir.DataType.FLOAT, *(dtype for dtype in dtypes if dtype is not None)):
        if dtype in dtypes:
            return dtype
    if isinstance(argument, np.ndarray | np.generic):
        return ir.DataType.from_numpy(argument.dtype)
    # NOTE: an empty list is a shape or a list of axes.
    return ir.DataType.INT64


def tensor(value: Any, dtype: ir.DataType | None) -> ir.TensorProtocol:
    """A Python value as a tensor; a complex number as a pair of real numbers, shape (2)."""
    if isinstance(value, str):
        return ir.StringTensor([value.encode()], shape=ir.Shape([]))
    if isinstance(value, complex):
        value = (value.real, value.imag)
    dtype = dtype or python_dtype(value)
    return ir.Tensor(np.asarray(value).astype(dtype.numpy()), dtype=dtype)


def attribute(name: str, value: Any) -> ir.Attr:
    """A Python value as an attribute. Raises ValueError for a value of the graph: the attributes of ONNX's operators are constants."""
    # NOTE: onnx_ir's own conversion checks protocols, which is slow.
    if isinstance(value, bool | int):
        return ir.AttrInt64(name, int(value))
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if isinstance(value, list | tuple) and value and all(isinstance(item, int) for item in value):
        return ir.AttrInt64s(name, value)
    if any(isinstance(item, ir.Value) for item in (value if isinstance(value, list | tuple) else [value])):
        raise ValueError(f"ONNX takes '{name}' as a constant, and here it depends on a dynamic size or on data")
    return ir.convenience.convert_attribute(name, value)


def plain(value: Any) -> Any:
    """The Python value of an attribute; everything else as it is."""
    return value.value if isinstance(value, ir.Attr) else value
