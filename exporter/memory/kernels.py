"""How ONNX Runtime's CPU kernels use memory, as far as it decides a model's peak."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir as ir

from .execution import Kernel
from .shapes import Shapes

# NOTE: measured with ONNX Runtime 1.31: each operator after an Exp whose result nothing else reads, with every allocation counted.
VIEWS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
"""Their result is their first input with another shape, in the same memory."""

_IN_PLACE = frozenset(
    [
        "Cast",
        "Celu",
        "Clip",
        "Elu",
        "HardSigmoid",
        "LeakyRelu",
        "LogSoftmax",
        "Relu",
        "Selu",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Softsign",
        "Tanh",
        "ThresholdedRelu",
        "Trilu",
    ]
)
"""Their result takes the place of their first input, if nothing else needs it any more and it has as many bytes."""

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
_STATES = {"GRU": 3, "LSTM": 5, "RNN": 0}
"""What recurrent layers keep for each step, and at a time, in multiples of the hidden state."""


def workspace(kernel: Kernel, shapes: Shapes, inner: int) -> int:
    """The bytes that a kernel allocates while it runs, beside its results.

    Args:
        kernel: The kernel.
        shapes: The shapes of its tensors.
        inner: What its graphs allocate.
    """
    if kernel.operator == "Scan":
        return _scanned(kernel, shapes, inner)
    taken = _WORKSPACE.get(kernel.operator)
    return inner if taken is None or not shapes.bytes_of(kernel.outputs[0]) else taken(kernel, shapes)


def _recurrent(kernel: Kernel, shapes: Shapes) -> int:
    given, weight = shapes.sizes(kernel.inputs[0]), shapes.sizes(kernel.inputs[2])
    if given is None or weight is None:
        return 0
    steps, batch, width = given
    directions, _, hidden = weight
    gates = _GATES[kernel.operator] * (1 if kernel.operator == "RNN" else directions)
    # NOTE: what runs backwards gets a reversed copy of the input, and makes one of the result.
    reverse = steps * (width + hidden) if directions > 1 and kernel.operator != "RNN" else 0
    return shapes.width(kernel.inputs[0]) * batch * (hidden * (steps * gates + directions * _STATES[kernel.operator]) + reverse)


def _choices(kernel: Kernel, shapes: Shapes) -> int:
    # NOTE: a Where makes a tensor of each choice before it joins them.
    condition, *choices = (shapes.sizes(value) for value in kernel.inputs)
    width = shapes.width(kernel.outputs[0])
    return sum(width * math.prod(_broadcast(condition, each)) for each in choices if condition is not None and each is not None)


def _broadcast(first: Sequence[int], second: Sequence[int]) -> Iterator[int]:
    pairs = itertools.zip_longest(reversed(first), reversed(second), fillvalue=1)
    return (b if a == 1 else a for a, b in pairs)


def _columns(kernel: Kernel, shapes: Shapes) -> int:
    # NOTE: a column for each element of an image, before they are added up.
    given, weight = (shapes.sizes(value) for value in kernel.inputs[:2])
    return 0 if given is None or weight is None else shapes.width(kernel.outputs[0]) * math.prod(given[2:]) * math.prod(weight[1:])


def _to_the_end_and_back(kernel: Kernel, shapes: Shapes) -> int:
    # NOTE: a Softmax along another axis than the last transposes its input, and then its result.
    rank = len(shapes.sizes(kernel.outputs[0]) or ())
    return 0 if kernel.node.attributes.get_int("axis", -1) in {-1, rank - 1} else 2 * (shapes.bytes_of(kernel.outputs[0]) or 0)


def _scanned(kernel: Kernel, shapes: Shapes, inner: int) -> int:
    """The bytes that a Scan allocates beside its results, of which `inner` for an iteration."""
    # NOTE: it transposes what it cuts along another axis than the first, and in the end what it joins along one.
    inputs, outputs = (kernel.node.attributes.get_ints(f"scan_{end}_axes", ()) for end in ("input", "output"))
    given = kernel.node.inputs[len(kernel.node.inputs) - len(inputs) :]
    made = kernel.outputs[len(kernel.outputs) - len(outputs) :]
    before, after = (
        sum(shapes.bytes_of(value) or 0 for axis, value in zip(axes, values, strict=True) if axis and value is not None)
        for axes, values in ((inputs, given), (outputs, made))
    )
    return before + max(inner, after)


_WORKSPACE: Mapping[str, Callable[[Kernel, Shapes], int]] = {
    "ConvTranspose": _columns,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "Softmax": _to_the_end_and_back,
    "Where": _choices,
}


def in_place(kernel: Kernel) -> Sequence[ir.Value]:
    """The inputs whose memory the result may take."""
    if kernel.operator == "SumConv":
        # NOTE: the last input is added to the result of the convolution.
        return kernel.inputs[-1:]
    return kernel.inputs[:1] if kernel.operator in _IN_PLACE else ()
