"""Makes Reshapes work for tensors without elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from onnxplain.recording import small_constant
from onnxplain.source import locations
from onnxplain.torch_internals import shape_env

from .layouts import Constants


def known_rest(model: ir.Model) -> None:
    """Replaces -1 in the shapes of Reshapes by the number that it stands for; if dynamic dims are part of it, where a kept dim may be 0.

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
            elif _may_be_empty(node, shape.tolist()):
                _compute_rest(node, shape.tolist(), constants)


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


def _may_be_empty(node: ir.Node, wanted: Sequence[int]) -> bool:
    """Whether a dim that 0 keeps may be 0, such as `n - 1` for the size 1."""
    own = node.outputs[0].meta.get(locations.FX_NODE)
    operator = own or node.meta.get(locations.FX_NODE)
    value = operator.meta.get("val") if isinstance(operator, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return False
    # NOTE: within a translation, which dims of the result are kept here is not known.
    kept = [axis for axis, size in enumerate(wanted) if size == 0] if own is not None and value.dim() == len(wanted) else range(value.dim())
    return any(shape_env.may_be_zero(value.shape[axis]) for axis in kept)


def _compute_rest(node: ir.Node, wanted: Sequence[int], constants: Constants) -> None:
    """Computes the shape of a Reshape, with what -1 stands for, from the shape of its input."""
    given = node.inputs[0]
    assert given is not None
    if (rank := _rank(given)) is None:
        return
    made: list[ir.Node] = []

    def add(op_type: str, inputs: Sequence[ir.Value], **attributes: int) -> ir.Value:
        value = ir.Value(name=constants.free(f"{node.outputs[0].name}.{op_type.lower()}"), type=ir.TensorType(ir.DataType.INT64))
        facts = dict(node.metadata_props)
        made.append(ir.node(op_type, inputs, attributes, outputs=[value], name=f"{op_type}_{value.name}", metadata_props=facts))
        return value

    left = [axis for axis in range(rank) if axis >= len(wanted) or wanted[axis] != 0]
    taken = math.prod(size for size in wanted if size > 0)
    shape = add("Shape", [given])
    rest = add("ReduceProd", [add("Gather", [shape, constants.vector(left)])], keepdims=1)
    if taken > 1:
        rest = add("Div", [rest, constants.vector([taken])])
    kept = (add("Gather", [shape, constants.vector([axis])]) if size == 0 else None for axis, size in enumerate(wanted))
    sizes = [rest if size == -1 else each or constants.vector([size]) for each, size in zip(kept, wanted, strict=True)]
    node.replace_input_with(1, add("Concat", sizes, axis=0))
    node.attributes.add(ir.AttrInt64("allowzero", 1))
    for each in made:
        each.meta.update(node.meta)
    assert isinstance(node.graph, ir.Graph)
    node.graph.insert_before(node, made)


def _rank(value: ir.Value) -> int | None:
    if value.shape is not None:
        return len(value.shape)
    made = value.producer()
    return len(made.attributes["perm"].as_ints()) if made is not None and made.op_type == "Transpose" else None
