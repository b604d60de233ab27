"""Simplifies an ONNX operator before it is recorded: computes small constants, and leaves out operators that do nothing.

Only what is small is computed: sizes, axes, scalars. Weights are never folded into new constants.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.tensor_adapters import TorchTensor

LIMIT = 8192
"""Elements that a constant may have to be computed with, or to be made: masks and positions of short sequences."""

RANDOM = frozenset({"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})
"""Operators that give other numbers in each run, and at each place. (Dropout is left out of graphs in evaluation.)"""

FIXED = "fixed"
"""Key in the `meta` of a weight that no state dict can change: a buffer that is not persistent, or a constant of the model's code."""

Array = npt.NDArray[Any]


def simplify(name: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]) -> ir.Value | Array | None:
    """What an operator of ONNX opset 18 returns, if that is one of its inputs or a small constant; None if it must be recorded.

    Args:
        name: The operator's type.
        inputs: Its inputs.
        attributes: Its attributes as Python values.
    """
    if not inputs or inputs[0] is None:
        return None
    if (same := _same(name, inputs, attributes)) is not None:
        return same
    if name == "Shape":
        return _shape(inputs[0], attributes)
    if name == "CastLike" and (data := constant(inputs[0])) is not None and (dtype := _like(inputs)) is not None:
        return data.astype(dtype.numpy())
    compute = _COMPUTE.get(name)
    if compute is None:
        return None
    arrays = [None if value is None else constant(value) for value in inputs]
    if any(array is None and value is not None for array, value in zip(arrays, inputs, strict=True)):
        return None
    try:
        result = np.asarray(compute(attributes, *arrays))
    except (ValueError, IndexError, ZeroDivisionError, TypeError):
        # NOTE: the operator is wrong, or means something that numpy does not; ONNX's checker and runtime know.
        return None
    return result if result.size <= LIMIT else None


Inputs = list[ir.Value | Array | None]
"""Inputs of an operator; an array is a constant that is still to be made."""


def shortened(name: str, inputs: list[ir.Value | None], attributes: Mapping[str, Any]) -> tuple[Inputs, Mapping[str, Any]]:
    """The inputs and attributes with which an operator can do the work of the one before it, too: a reshape after a reshape."""
    value = inputs[0] if inputs else None
    before = None if value is None else value.producer()
    if before is None or before.domain or before.inputs[:1] == (None,):
        return list(inputs), attributes
    match name, before.op_type:
        case "Reshape", "Reshape" | "Unsqueeze" | "Squeeze" | "Flatten":
            shape = None if inputs[1] is None else constant(inputs[1])
            # NOTE: a 0 copies the size of the input, which is another one then.
            if shape is not None and (0 not in shape or attributes.get("allowzero")):
                return shortened(name, [before.inputs[0], *inputs[1:]], attributes)
        case "Unsqueeze", "Unsqueeze":
            axes = _axes_of_both(before.inputs[0], before.inputs[1], inputs[1])
            if axes is not None:
                return [before.inputs[0], axes], attributes
        case "Transpose", "Transpose":
            first, second = before.attributes.get("perm"), attributes.get("perm")
            if first is not None and second is not None:
                return shortened(name, [before.inputs[0]], {"perm": [first.as_ints()[axis] for axis in second]})
    return list(inputs), attributes


def _axes_of_both(value: ir.Value | None, first: ir.Value | None, second: ir.Value | None) -> Array | None:
    """The axes of one Unsqueeze in the place of two."""
    inner = None if first is None else constant(first)
    outer = None if second is None else constant(second)
    if value is None or value.shape is None or inner is None or outer is None:
        return None
    rank = len(value.shape) + inner.size + outer.size
    last = {int(axis) % rank for axis in outer}
    rest = [axis for axis in range(rank) if axis not in last]
    return np.array(sorted(last | {rest[int(axis) % len(rest)] for axis in inner}), dtype=np.int64)


def constant(value: ir.Value) -> Array | None:
    """The small constant that `value` is; None for all else, weights included."""
    tensor = value.const_value
    if tensor is None or tensor.dtype is ir.DataType.STRING or tensor.size > LIMIT:
        return None
    if isinstance(tensor, TorchTensor) and not value.meta.get(FIXED):
        return None
    array: Array = tensor.numpy()
    return array


def uniform(value: ir.Value) -> Any:
    """The number that all elements of a constant are, also of a large one that is made by expanding a small one; None for all else."""
    producer = value.producer()
    if producer is not None and producer.op_type == "Expand" and not producer.domain and producer.inputs[0] is not None:
        return uniform(producer.inputs[0])
    array = constant(value)
    if array is None or array.size == 0 or not (array == array.flat[0]).all():
        return None
    return array.flat[0].item()


def _same(name: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]) -> ir.Value | None:
    value = inputs[0]
    assert value is not None
    match name:
        case "Identity":
            return value
        case "Cast":
            return value if value.dtype is not None and value.dtype == attributes["to"] else None
        case "CastLike":
            return value if value.dtype is not None and value.dtype is _like(inputs) else None
        case "Concat":
            return value if len(inputs) == 1 else None
        case "Transpose":
            permutation = attributes.get("perm")
            return value if permutation is not None and list(permutation) == list(range(len(permutation))) else None
        case "Reshape" | "Expand":
            target = None if inputs[1] is None else constant(inputs[1])
            unchanged = _equal if name == "Reshape" else _covers
            return value if target is not None and value.shape is not None and unchanged(value.shape, target) else None
        case "Add" | "Sub" | "Mul" | "Div":
            return _neutral(name, inputs)
        case _:
            return None


def _neutral(name: str, inputs: Sequence[ir.Value | None]) -> ir.Value | None:
    """The operand that adding zero or multiplying by one leaves as it is."""
    neutral = 0 if name in ("Add", "Sub") else 1
    pairs = [(inputs[0], inputs[1])] if name in ("Sub", "Div") else [(inputs[0], inputs[1]), (inputs[1], inputs[0])]
    for value, other in pairs:
        if value is None or other is None or value.shape is None or other.shape is None or len(other.shape) > len(value.shape):
            continue
        number = constant(other)
        if number is not None and number.size == 1 and number.item() == neutral:
            return value
    return None


def _like(inputs: Sequence[ir.Value | None]) -> ir.DataType | None:
    return None if inputs[1] is None else inputs[1].dtype


def _equal(shape: ir.Shape, target: Array) -> bool:
    if len(shape) != target.size or np.count_nonzero(target == -1) > 1:
        return False
    # NOTE: a single -1 stands for the size that is left, which is the one there.
    return all(isinstance(size, int) and size > 0 and wanted in (size, -1) for size, wanted in zip(shape, target, strict=True))


def _covers(shape: ir.Shape, target: Array) -> bool:
    """True if broadcasting to `target` leaves a tensor of this shape as it is."""
    sizes = [size if isinstance(size, int) else None for size in shape][len(shape) - target.size :]
    return len(shape) >= target.size and all(wanted in (1, size) for size, wanted in zip(sizes, target, strict=True))


def _shape(value: ir.Value, attributes: Mapping[str, Any]) -> Array | None:
    if value.shape is None:
        return None
    sizes = list(value.shape)[attributes.get("start") or 0 : attributes.get("end")]
    return np.array(sizes, dtype=np.int64) if all(isinstance(size, int) for size in sizes) else None


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


def _divide(_: Mapping[str, Any], a: Array, b: Array) -> Array:
    # NOTE: not `kind == "f"`: bfloat16 has another one.
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if (b == 0).any():
        raise ZeroDivisionError("what an int by zero is, is the runtime's to say")
    # NOTE: ONNX rounds toward zero, numpy toward minus infinity; floats cannot hold large ints.
    floor = np.floor_divide(a, b)
    return np.asarray(floor + ((floor < 0) & (floor * b != a))).astype(a.dtype)


def _cast(attributes: Mapping[str, Any], data: Array) -> Array:
    result: Array = data.astype(ir.DataType(attributes["to"]).numpy())
    return result


def _axes(axes: Array | None) -> tuple[int, ...] | None:
    return None if axes is None else tuple(map(int, axes))


def _cumulative_sum(attributes: Mapping[str, Any], data: Array, axis: Array) -> Array:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise ValueError("only the plain sum is computed here")
    return np.cumsum(data, axis=int(axis.item()), dtype=data.dtype)


def _gather_nd(attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    if attributes.get("batch_dims"):
        raise ValueError("only without batch dims")
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


def _elementwise(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda _, *arrays: function(*arrays)


def _folded(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda _, *arrays: functools.reduce(function, arrays)


_COMPUTE: Mapping[str, Callable[..., Any]] = {
    "Abs": _elementwise(np.abs),
    "Add": _elementwise(np.add),
    "And": _elementwise(np.logical_and),
    "BitwiseAnd": _elementwise(np.bitwise_and),
    "BitwiseNot": _elementwise(np.bitwise_not),
    "BitwiseOr": _elementwise(np.bitwise_or),
    "Cast": _cast,
    "Ceil": _elementwise(np.ceil),
    "Cos": _elementwise(np.cos),
    "Exp": _elementwise(np.exp),
    "Concat": lambda attributes, *arrays: np.concatenate(arrays, axis=attributes["axis"]),
    "CumSum": _cumulative_sum,
    "Div": _divide,
    "Equal": _elementwise(np.equal),
    "Expand": lambda _, data, shape: np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(map(int, shape)))),
    "Floor": _elementwise(np.floor),
    "Gather": lambda attributes, data, indices: np.take(data, indices, axis=attributes.get("axis") or 0),
    "GatherElements": lambda attributes, data, indices: np.take_along_axis(data, indices, axis=attributes.get("axis") or 0),
    "GatherND": _gather_nd,
    "Greater": _elementwise(np.greater),
    "GreaterOrEqual": _elementwise(np.greater_equal),
    "Less": _elementwise(np.less),
    "LessOrEqual": _elementwise(np.less_equal),
    "Log": _elementwise(np.log),
    "Max": _folded(np.maximum),
    "Min": _folded(np.minimum),
    "Mul": _elementwise(np.multiply),
    "Neg": _elementwise(np.negative),
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "Pow": lambda _, a, b: np.power(a, b).astype(a.dtype),
    "Range": lambda _, start, limit, delta: np.arange(start, limit, delta, dtype=start.dtype),
    "Reciprocal": lambda _, a: (1 / a).astype(a.dtype),
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "Reshape": _reshape,
    "Sign": _elementwise(np.sign),
    "Sin": _elementwise(np.sin),
    "Slice": _slice,
    "Sqrt": _elementwise(np.sqrt),
    "Squeeze": lambda _, data, axes=None: np.squeeze(data, axis=_axes(axes)),
    "Sub": _elementwise(np.subtract),
    "Tile": lambda _, data, repeats: np.tile(data, tuple(map(int, repeats))),
    "Transpose": lambda attributes, data: np.transpose(data, attributes.get("perm")),
    "Trilu": _trilu,
    "Unsqueeze": lambda _, data, axes: np.expand_dims(data, axis=tuple(map(int, axes))),
    "Where": lambda _, condition, a, b: np.where(condition, a, b),
}
