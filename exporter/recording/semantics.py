"""What operators of ONNX opset 18 compute, on numpy arrays.

An operator raises a ValueError, IndexError, TypeError or ArithmeticError where its result is not defined or has too many elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from onnxplain.torch_internals import fake_tensors

Array = npt.NDArray[Any]

LIMIT = 8192
"""The largest number of elements of a constant that is used in a computation, or made by one: masks and positions of short sequences."""

_FLOAT8 = frozenset(
    {ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E4M3FNUZ, ir.DataType.FLOAT8E5M2, ir.DataType.FLOAT8E5M2FNUZ, ir.DataType.FLOAT8E8M0}
)


def compute(name: str, attributes: Mapping[str, Any], inputs: list[Array | None]) -> Array | None:
    """The output of an operator; None if it is not in the table, fails, or has more than `LIMIT` elements.

    Args:
        name: The operator's type.
        attributes: Its attributes as Python values; None for those left out.
        inputs: Its inputs; None for those left out.
    """
    operator = OPERATORS.get(name)
    if operator is None:
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(operator(attributes, *inputs))
    except (ValueError, IndexError, ArithmeticError, TypeError):
        # NOTE: the operator is wrong, or means something that numpy does not; ONNX's checker and runtime decide.
        return None
    return result if result.size <= LIMIT else None


def cast(data: Array, dtype: ir.DataType) -> Array:
    """ONNX's Cast.

    Raises:
        ValueError: Large numbers saturate in the dtype, which numpy does not do.
    """
    if dtype in _FLOAT8 or dtype.bitwidth < 8:
        raise ValueError("numbers saturate in 8-bit floats and smaller dtypes")
    result: Array = data.astype(dtype.numpy())
    return result


def _limit(*sizes: int) -> None:
    """Refuses a result of this shape, before memory is taken for it, if it has too many elements."""
    if math.prod(sizes) > LIMIT:
        raise ValueError("the result has too many elements for a constant")


def _slice(_: Mapping[str, Any], data: Array, starts: Array, ends: Array, *rest: Array | None) -> Array:
    axes, steps = (*rest, None, None)[:2]
    index = [slice(None)] * data.ndim
    for position, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = position if axes is None else int(axes[position])
        index[axis] = slice(int(start), int(end), None if steps is None else int(steps[position]))
    result: Array = data[tuple(index)]
    return result


def _reshape(attributes: Mapping[str, Any], data: Array, shape: Array) -> Array:
    zero_is_zero = attributes.get("allowzero")
    return data.reshape([data.shape[axis] if size == 0 and not zero_is_zero else int(size) for axis, size in enumerate(shape)])


def _divide(a: Array, b: Array) -> Array:
    # NOTE: not `kind == "f"`: bfloat16 has the kind "V".
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if (b == 0).any():
        raise ZeroDivisionError("ONNX does not define an int divided by zero")
    # NOTE: ONNX rounds toward zero, numpy toward minus infinity; floats cannot hold large ints.
    floor = np.floor_divide(a, b)
    return np.asarray(floor + ((floor < 0) & (floor * b != a))).astype(a.dtype)


def _axes(axes: Array | None) -> tuple[int, ...] | None:
    return None if axes is None else tuple(map(int, axes))


def _cumulative_sum(attributes: Mapping[str, Any], data: Array, axis: Array) -> Array:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise ValueError("only plain sums are computed")
    return np.cumsum(data, axis=int(axis.item()), dtype=data.dtype)


def _gather(attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    axis = attributes.get("axis") or 0
    _limit(indices.size, data.size // max(data.shape[axis], 1))
    return np.take(data, indices, axis=axis)


def _gather_elements(attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    axis = (attributes.get("axis") or 0) % data.ndim
    # NOTE: along the other axes the indices may be fewer than the elements; numpy would broadcast them.
    cut = tuple(slice(None if each == axis else size) for each, size in enumerate(indices.shape))
    return np.take_along_axis(data[cut], indices, axis=axis)


def _gather_nd(attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    if attributes.get("batch_dims"):
        raise ValueError("only gathers without batch dims are computed")
    length = indices.shape[-1]
    _limit(indices.size // length, *data.shape[length:])
    result: Array = data[tuple(np.moveaxis(indices, -1, 0))]
    return result


def _reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(attributes: Mapping[str, Any], data: Array, axes: Array | None = None) -> Array:
        if axes is None or axes.size == 0:
            if attributes.get("noop_with_empty_axes"):
                return data
            axes = None
        # NOTE: numpy would add small ints up in a larger dtype.
        return function(data, axis=_axes(axes), keepdims=attributes.get("keepdims") != 0).astype(data.dtype)

    return compute


def _trilu(attributes: Mapping[str, Any], data: Array, diagonal: Array | None = None) -> Array:
    part = np.tril if attributes.get("upper") == 0 else np.triu
    return part(data, 0 if diagonal is None else int(diagonal.item()))


def _range(_: Mapping[str, Any], start: Any, limit: Any, delta: Any) -> Any:
    _limit(math.ceil((limit.item() - start.item()) / delta.item()))
    return np.arange(start, limit, delta, dtype=start.dtype)


def _resize(
    attributes: Mapping[str, Any], data: Array, _roi: Array | None, scales: Array | None = None, sizes: Array | None = None
) -> Array:
    cuts = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize" or attributes.get("axes") is not None
    if attributes.get("mode") not in (None, "nearest") or cuts or data.size == 0 or not (data == data.flat[0]).all():
        raise ValueError("only copies of one number are computed")
    if sizes is None:
        sizes = np.floor(np.multiply(data.shape, scales))  # type: ignore[arg-type]  # a Resize has one of the two
    shape = [int(size) for size in sizes]
    _limit(*shape)
    return np.full(shape, data.flat[0], dtype=data.dtype)


def _tile(_: Mapping[str, Any], data: Array, repeats: Array) -> Array:
    counts = tuple(map(int, repeats))
    _limit(*data.shape, *counts)
    return np.tile(data, counts)


def _elementwise(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(_: Mapping[str, Any], *arrays: Array) -> Array:
        if math.prod(array.size for array in arrays) > LIMIT:
            _limit(*np.broadcast_shapes(*(array.shape for array in arrays)))
        return function(*arrays)

    return compute


def _as_in_torch(function: Callable[..., torch.Tensor], otherwise: Callable[..., Array]) -> Callable[..., Array]:
    """An elementwise function as PyTorch computes it: numpy's last bit may be another, which counts in the sine of a large angle."""

    def compute(*arrays: Array) -> Array:
        if arrays[0].dtype.kind != "f" or any(array.dtype != arrays[0].dtype for array in arrays):
            return otherwise(*arrays)
        with fake_tensors.mode_left():
            return function(*(torch.from_numpy(np.array(array)) for array in arrays)).numpy()

    return _elementwise(compute)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Abs": _elementwise(np.abs),
    "Add": _elementwise(np.add),
    "And": _elementwise(np.logical_and),
    "BitwiseAnd": _elementwise(np.bitwise_and),
    "BitwiseNot": _elementwise(np.bitwise_not),
    "BitwiseOr": _elementwise(np.bitwise_or),
    "Cast": lambda attributes, data: cast(data, ir.DataType(attributes["to"])),
    "Ceil": _elementwise(np.ceil),
    "Cos": _as_in_torch(torch.cos, np.cos),
    "Exp": _as_in_torch(torch.exp, np.exp),
    "Concat": lambda attributes, *arrays: np.concatenate(arrays, axis=attributes["axis"]),
    "CumSum": _cumulative_sum,
    "Div": _elementwise(_divide),
    "Equal": _elementwise(np.equal),
    "Expand": lambda _, data, shape: np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(map(int, shape)))),
    "Floor": _elementwise(np.floor),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Greater": _elementwise(np.greater),
    "GreaterOrEqual": _elementwise(np.greater_equal),
    "Less": _elementwise(np.less),
    "LessOrEqual": _elementwise(np.less_equal),
    "Log": _as_in_torch(torch.log, np.log),
    "Max": _elementwise(lambda *arrays: functools.reduce(np.maximum, arrays)),
    "Min": _elementwise(lambda *arrays: functools.reduce(np.minimum, arrays)),
    "Mul": _elementwise(np.multiply),
    "Neg": _elementwise(np.negative),
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "Pow": _as_in_torch(torch.pow, lambda a, b: np.power(a, b).astype(a.dtype)),
    "Range": _range,
    "Reciprocal": _elementwise(lambda a: (1 / a).astype(a.dtype)),
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "Reshape": _reshape,
    "Resize": _resize,
    "Sign": _elementwise(np.sign),
    "Sin": _as_in_torch(torch.sin, np.sin),
    "Slice": _slice,
    "Sqrt": _elementwise(np.sqrt),
    "Squeeze": lambda _, data, axes=None: np.squeeze(data, axis=_axes(axes)),
    "Sub": _elementwise(np.subtract),
    "Tile": _tile,
    "Transpose": lambda attributes, data: np.transpose(data, attributes.get("perm")),
    "Trilu": _trilu,
    "Unsqueeze": lambda _, data, axes: np.expand_dims(data, axis=tuple(map(int, axes))),
    "Where": _elementwise(np.where),
}
"""The operators by name. Each takes its attributes, and its inputs as arrays."""
