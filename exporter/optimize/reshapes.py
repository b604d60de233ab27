"""Makes Reshapes work for tensors without elements."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnxplain.recording import small_constant

from .layouts import Constants


def known_rest(model: ir.Model) -> None:
    """Replaces -1 in the shapes of Reshapes by the number that it stands for, where no dynamic dim is part of it.

    Beside a 0, which keeps a dim, ONNX Runtime computes what -1 stands for by a division by that dim. An empty batch would be an error.
    """
    constants = Constants(model.graph)
    for node in model.graph.all_nodes():
        if node.op_type != "Reshape" or node.domain or node.inputs[0] is None or node.inputs[1] is None:
            continue
        shape = small_constant(node.inputs[1])
        if shape is not None and 0 in shape and -1 in shape:
            rest = _rest(node.inputs[0].shape, shape.tolist())
            if rest is not None:
                node.replace_input_with(1, constants.vector([rest if size == -1 else size for size in shape.tolist()]))


def _rest(given: ir.Shape | None, wanted: list[int]) -> int | None:
    """What -1 stands for; None if it is not known."""
    if given is None or any(size == 0 and axis >= len(given) for axis, size in enumerate(wanted)):
        return None
    left = [size for axis, size in enumerate(given) if axis >= len(wanted) or wanted[axis] != 0]
    numbers = [size for size in left if isinstance(size, int)]
    taken = math.prod(size for size in wanted if size > 0)
    if len(numbers) < len(left) or math.prod(numbers) % taken:
        return None
    # NOTE: 0 would keep a dim.
    return math.prod(numbers) // taken or None
