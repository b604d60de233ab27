"""Simplifies an ONNX operator before it is recorded: computes small constants, and leaves out operators that do nothing.

Only small constants are computed: sizes, axes, scalars. Weights are never folded into new constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.tensor_adapters import TorchTensor

from .semantics import LIMIT, OPERATORS, Array, compute
from .tensor import PRECISE

RANDOM = frozenset({"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})
"""Operators that give different numbers in each run, and at each node. (Graphs in evaluation have no Dropout.)"""

FIXED = "fixed"
"""Key, in the `meta` of a weight, of whether no state dict can change it: a buffer that is not persistent, or a constant in the code."""


def simplify(name: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]) -> ir.Value | Array | None:
    """The output of an operator of ONNX opset 18, if that is one of its inputs or a small constant; None if it must be recorded.

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
    if name == "CastLike" and (dtype := _like(inputs)) is not None:
        name, inputs, attributes = "Cast", inputs[:1], {"to": dtype}
    if name not in OPERATORS:
        return None
    arrays = [None if value is None else small_constant(value) for value in inputs]
    if any(array is None and value is not None for array, value in zip(arrays, inputs, strict=True)):
        return None
    return compute(name, attributes, arrays)


Inputs = list[ir.Value | Array | None]
"""The inputs of an operator; an array is a constant that has no value yet."""


def shortened(name: str, inputs: list[ir.Value | None], attributes: Mapping[str, Any]) -> tuple[Inputs, Mapping[str, Any]]:
    """The inputs and attributes with which an operator does the work of the operator before it as well.

    A Reshape can take the place of two, and so can an Unsqueeze or a Transpose.

    Returns:
        The inputs and attributes as given, if the operator before must stay.
    """
    value = inputs[0] if inputs else None
    before = None if value is None else value.producer()
    if before is None or before.domain:
        return list(inputs), attributes
    match name, before.op_type:
        case "Reshape", "Reshape" | "Unsqueeze" | "Squeeze" | "Flatten":
            shape = None if inputs[1] is None else small_constant(inputs[1])
            # NOTE: a 0 copies a size of the input, which would be another input.
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
    """The axes of one Unsqueeze that takes the place of two."""
    inner = None if first is None else small_constant(first)
    outer = None if second is None else small_constant(second)
    if value is None or value.shape is None or inner is None or outer is None:
        return None
    rank = len(value.shape) + inner.size + outer.size
    last = {int(axis) % rank for axis in outer}
    rest = [axis for axis in range(rank) if axis not in last]
    return np.array(sorted(last | {rest[int(axis) % len(rest)] for axis in inner}), dtype=np.int64)


def small_constant(value: ir.Value) -> Array | None:
    """`value` as an array if it is a small constant; None for all other values, weights included."""
    tensor = value.const_value
    if tensor is None or tensor.dtype is ir.DataType.STRING or tensor.size > LIMIT:
        return None
    if isinstance(tensor, TorchTensor) and not value.meta.get(FIXED):
        return None
    array: Array = tensor.numpy()
    return array


_REPEATING = frozenset({"Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators whose results hold the numbers of their input alone."""


def uniform_number(value: ir.Value) -> Any:
    """The number that all elements of a constant equal; None if there is none. A large constant may be an expanded small one."""
    producer = value.producer()
    if producer is not None and producer.op_type in _REPEATING and not producer.domain and producer.inputs[0] is not None:
        return uniform_number(producer.inputs[0])
    array = small_constant(value)
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
            same = value.dtype is not None and value.dtype == attributes["to"]
            return value if same else value.meta.get(PRECISE) if attributes["to"] == ir.DataType.DOUBLE else None
        case "CastLike":
            return value if value.dtype is not None and value.dtype is _like(inputs) else None
        case "Concat":
            return value if len(inputs) == 1 else None
        case "Transpose":
            permutation = attributes.get("perm")
            return value if permutation is not None and list(permutation) == list(range(len(permutation))) else None
        case "Reshape" | "Expand":
            target = None if inputs[1] is None else small_constant(inputs[1])
            unchanged = _equal if name == "Reshape" else _covers
            return value if target is not None and value.shape is not None and unchanged(value.shape, target) else None
        case "Add" | "Sub" | "Mul" | "Div":
            return _neutral(name, inputs)
        case "Resize":
            sizes = small_constant(inputs[3]) if len(inputs) > 3 and inputs[3] is not None else None
            cut = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize" or attributes.get("axes") is not None
            return value if sizes is not None and not cut and value.shape is not None and _equal(value.shape, sizes) else None
        case "Pad":
            pads = None if inputs[1] is None else small_constant(inputs[1])
            return value if pads is not None and not pads.any() else None
        case "Squeeze":
            return _unsqueezed(value, inputs[1]) if len(inputs) > 1 else None
        case _:
            return None


def _unsqueezed(value: ir.Value, axes: ir.Value | None) -> ir.Value | None:
    """The value to which an Unsqueeze added the dims that a Squeeze of `value` would remove."""
    before = value.producer()
    if before is None or before.op_type != "Unsqueeze" or before.domain or before.inputs[1] is None or axes is None:
        return None
    added, removed = small_constant(before.inputs[1]), small_constant(axes)
    same = added is not None and removed is not None and np.array_equal(np.sort(added), np.sort(removed))
    return before.inputs[0] if same else None


def _neutral(name: str, inputs: Sequence[ir.Value | None]) -> ir.Value | None:
    """The operand to which zero is added, or which is multiplied by one."""
    neutral = 0 if name in ("Add", "Sub") else 1
    pairs = [(inputs[0], inputs[1])] if name in ("Sub", "Div") else [(inputs[0], inputs[1]), (inputs[1], inputs[0])]
    for value, other in pairs:
        if value is None or other is None or other.shape is None:
            continue
        # NOTE: a scalar broadcasts to any shape, also to one that is not known.
        if len(other.shape) > 0 and (value.shape is None or len(other.shape) > len(value.shape)):
            continue
        number = small_constant(other)
        if number is not None and number.size == 1 and number.item() == neutral:
            return value
    return None


def _like(inputs: Sequence[ir.Value | None]) -> ir.DataType | None:
    return None if inputs[1] is None else inputs[1].dtype


def _equal(shape: ir.Shape, target: Array) -> bool:
    if len(shape) != target.size or np.count_nonzero(target == -1) > 1:
        return False
    # NOTE: a single -1 stands for the size that is left, which is that of `shape`.
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
