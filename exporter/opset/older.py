"""Writes the operators of ONNX opset 18 with those of older opsets, down to 11.

An operator that an older opset has in another form is rewritten: axes become an attribute, a layer normalization its steps. Every other
one stays, if its older schema has the attributes, the inputs and the dtypes that it uses. The schemas are onnx's (read in 1.23).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

OLDEST = 11
"""The oldest opset: before it, most operators that models need are missing."""
BUILT = 18
"""The opset of the operators that are rewritten."""

Way = Callable[[ir.Node, int], Sequence[ir.Node] | None]
"""Writes a node for an opset: new nodes, the last with the node's outputs; None if the opset cannot say it."""


def lower(model: ir.Model, opset: int) -> list[tuple[ir.Node, int]]:
    """Brings `model` from opset 18 to `opset`.

    Returns:
        The nodes that `opset` cannot say, each with the next opset that can. The model is unfinished if there are any.
    """
    refused = []
    for node in list(model.graph.all_nodes()):
        if node.domain != "":
            continue
        made = _said(node, opset)
        if made is None:
            refused.append((node, next((later for later in range(opset, BUILT) if _said(node, later) is not None), BUILT)))
        elif made != [node]:
            _replace(node, made)
    if not refused:
        _remove_unused(model.graph)
        model.graph.opset_imports[""] = opset
        model.ir_version = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
    return refused


def _said(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """The nodes that say `node` in `opset`: often itself. None if the opset cannot say it."""
    changed, way = _WAYS.get(node.op_type, (OLDEST, None))
    made = [node] if way is None or opset >= changed else way(node, opset)
    return made if made is not None and all(_fits(each, opset) for each in made) else None


def _replace(node: ir.Node, made: Sequence[ir.Node]) -> None:
    graph = node.graph
    assert graph is not None
    for each in made:
        each.metadata_props.update(node.metadata_props)
        each.meta.update(node.meta)
    *steps, last = made
    last.name = node.name
    for number, each in enumerate(steps):
        each.name = f"{node.name}/{each.op_type}_{number}"
        for place, output in enumerate(each.outputs):
            output.name = f"{each.name}/{place}"
    # NOTE: of a layer normalization, only the first output is used.
    new = list(last.outputs)
    old = list(node.outputs)[: len(new)]
    for before, after in zip(old, new, strict=True):
        after.name, after.shape, after.type = before.name, before.shape, before.type
        after.metadata_props.update(before.metadata_props)
        after.meta.update(before.meta)
    ir.convenience.replace_nodes_and_values(graph, node, [node], list(made), old, new)


def _remove_unused(graph: ir.Graph) -> None:
    for name, value in list(graph.initializers.items()):
        if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
            del graph.initializers[name]


def _fits(node: ir.Node, opset: int) -> bool:
    """Whether the operator of `opset` takes the attributes, the number of inputs and the dtypes of `node`."""
    if not onnx.defs.has(node.op_type, opset, ""):
        return False
    schema, newer = (onnx.defs.get_schema(node.op_type, each, "") for each in (opset, BUILT))
    if schema.since_version == newer.since_version:
        return True
    for name in [name for name in node.attributes if name not in schema.attributes]:
        default = newer.attributes[name].default_value
        if not default.type or ir.serde.deserialize_attribute(default).value != node.attributes[name].value:
            return False
        # NOTE: what the older operator always does.
        del node.attributes[name]
    if not schema.min_input <= len(node.inputs) <= schema.max_input:
        return False
    accepted = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    for number, value in enumerate(node.inputs):
        parameter = schema.inputs[min(number, len(schema.inputs) - 1)]
        if value is None or not isinstance(value.type, ir.TensorType):
            continue
        if f"tensor({value.type.dtype.name.lower()})" not in accepted.get(parameter.type_str, [parameter.type_str]):
            return False
    return True


def _numbers(value: ir.Value | None) -> list[int] | None:
    """The integers in a constant; None if it is none."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(each) for each in np.asarray(tensor.numpy()).reshape(-1)]


def _constant(value: Any, dtype: Any = np.int64) -> ir.Node:
    return ir.node("Constant", [], {"value": ir.tensor(np.asarray(value, dtype))})


def _attributes(node: ir.Node, *left_out: str) -> dict[str, Any]:
    return {name: each for name, each in node.attributes.items() if name not in left_out}


def _input(node: ir.Node, number: int) -> ir.Value | None:
    return node.inputs[number] if len(node.inputs) > number else None


def _attribute(node: ir.Node, name: str, default: Any) -> Any:
    return node.attributes[name].value if name in node.attributes else default


def _rank(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


def _is_integer(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and not value.dtype.is_floating_point()


def _with_axes(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """Reductions, Squeeze and Unsqueeze: axes were an attribute."""
    del opset
    given = _input(node, 1)
    axes = _numbers(given)
    if given is not None and axes is None:
        return None
    if not axes and _attribute(node, "noop_with_empty_axes", default=False):
        return [ir.node("Identity", [node.inputs[0]])]
    attributes = _attributes(node, "noop_with_empty_axes") | ({"axes": axes} if axes else {})
    return [ir.node(node.op_type, [node.inputs[0]], attributes)]


def _split(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    axis = _attribute(node, "axis", 0)
    parts = _numbers(_input(node, 1))
    along: dict[str, Any] = {"axis": axis}
    if _input(node, 1) is not None and parts is None and opset < 13:
        return None
    if "num_outputs" in node.attributes:
        shape = node.inputs[0].shape if node.inputs[0] is not None else None
        size = None if shape is None else shape[axis]
        if not isinstance(size, int):
            return _equal_parts(node, axis) if opset >= 13 else None
        most = -(-size // len(node.outputs))
        parts = [most] * (len(node.outputs) - 1) + [size - most * (len(node.outputs) - 1)]
    if opset < 13:
        return [ir.node("Split", [node.inputs[0]], along | ({"split": parts} if parts else {}), num_outputs=len(node.outputs))]
    if "num_outputs" not in node.attributes:
        return [ir.node("Split", node.inputs, along, num_outputs=len(node.outputs))]
    sizes = _constant(parts)
    return [sizes, ir.node("Split", [node.inputs[0], sizes.outputs[0]], along, num_outputs=len(node.outputs))]


def _equal_parts(node: ir.Node, axis: int) -> Sequence[ir.Node]:
    """A split of a size that is not known: all parts but the last have the size that divides it, rounded up."""
    count = len(node.outputs)
    shape, place = ir.node("Shape", [node.inputs[0]]), _constant([axis])
    size = ir.node("Gather", [shape.outputs[0], place.outputs[0]])
    fewer, number = _constant([count - 1]), _constant([count])
    raised = ir.node("Add", [size.outputs[0], fewer.outputs[0]])
    most = ir.node("Div", [raised.outputs[0], number.outputs[0]])
    before = ir.node("Mul", [most.outputs[0], fewer.outputs[0]])
    last = ir.node("Sub", [size.outputs[0], before.outputs[0]])
    sizes = ir.node("Concat", [*[most.outputs[0]] * (count - 1), last.outputs[0]], {"axis": 0})
    parts = ir.node("Split", [node.inputs[0], sizes.outputs[0]], {"axis": axis}, num_outputs=count)
    return [shape, place, size, fewer, number, raised, most, before, last, sizes, parts]


def _pad(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """Axes cannot be named: the others are padded by nothing."""
    del opset
    if _input(node, 3) is None:
        return [node]
    axes, pads, rank = _numbers(_input(node, 3)), _numbers(node.inputs[1]), _rank(node.inputs[0])
    if axes is None or pads is None or rank is None:
        return None
    every = [0] * (2 * rank)
    for number, axis in enumerate(axes):
        every[axis % rank], every[rank + axis % rank] = pads[number], pads[len(axes) + number]
    sizes = _constant(every)
    return [sizes, ir.node("Pad", [node.inputs[0], sizes.outputs[0], node.inputs[2]], _attributes(node))]


def _softmax(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """Until opset 12 it normalizes over all dims from its axis on, so the axis must be the last one."""
    del opset
    axis, rank = _attribute(node, "axis", -1), _rank(node.inputs[0])
    if axis in (-1, None if rank is None else rank - 1):
        return [ir.node(node.op_type, node.inputs, {"axis": -1})]
    if rank is None:
        return None
    axis %= rank
    order = [each for each in range(rank) if each != axis] + [axis]
    back = [order.index(each) for each in range(rank)]
    turned = ir.node("Transpose", [node.inputs[0]], {"perm": order})
    done = ir.node(node.op_type, turned.outputs, {"axis": rank - 1})
    return [turned, done, ir.node("Transpose", done.outputs, {"perm": back})]


def _layer_normalization(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    del opset
    rank, x = _rank(node.inputs[0]), node.inputs[0]
    if rank is None or x is None or x.dtype is None or any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
        return None
    axis, epsilon = _attribute(node, "axis", -1), _attribute(node, "epsilon", 1e-5)
    axes = list(range(axis % rank, rank))
    reduced: dict[str, Any] = {"axes": axes, "keepdims": 1}
    # NOTE: as the operator itself, it computes half-precision values in float32.
    wide = x.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    first = [ir.node("Cast", [x], {"to": ir.DataType.FLOAT})] if wide else []
    start = first[0].outputs[0] if first else x
    mean = ir.node("ReduceMean", [start], reduced)
    centered = ir.node("Sub", [start, mean.outputs[0]])
    squares = ir.node("Mul", [centered.outputs[0]] * 2)
    variance = ir.node("ReduceMean", squares.outputs, reduced)
    least = _constant(epsilon, np.float64 if x.dtype == ir.DataType.DOUBLE else np.float32)
    positive = ir.node("Add", [variance.outputs[0], least.outputs[0]])
    deviation = ir.node("Sqrt", positive.outputs)
    made = [*first, mean, centered, squares, variance, least, positive, deviation]
    made.append(ir.node("Div", [centered.outputs[0], deviation.outputs[0]]))
    if wide:
        made.append(ir.node("Cast", made[-1].outputs, {"to": x.dtype}))
    for number, operator in ((1, "Mul"), (2, "Add")):
        if (weight := _input(node, number)) is not None:
            made.append(ir.node(operator, [made[-1].outputs[0], weight]))
    return made


def _cast_like(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    del opset
    like = node.inputs[1]
    return None if like is None or like.dtype is None else [ir.node("Cast", [node.inputs[0]], {"to": like.dtype})]


def _trilu(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """A triangle by a mask of rows and columns."""
    del opset
    x, rank = node.inputs[0], _rank(node.inputs[0])
    if x is None or rank is None or x.dtype is None:
        return None
    upper = _attribute(node, "upper", default=True)
    zero, one, shape = _constant(0), _constant(1), ir.node("Shape", [x])
    made = [zero, one, shape]
    ways = []
    for axis, form in ((rank - 2, [-1, 1]), (rank - 1, [1, -1])):
        number, apart = _constant(axis), _constant(form)
        size = ir.node("Gather", [shape.outputs[0], number.outputs[0]])
        counted = ir.node("Range", [zero.outputs[0], size.outputs[0], one.outputs[0]])
        ways.append(ir.node("Reshape", [counted.outputs[0], apart.outputs[0]]))
        made += [number, apart, size, counted, ways[-1]]
    right = ir.node("Sub", [ways[1].outputs[0], ways[0].outputs[0]])
    diagonal = _input(node, 1)
    k = diagonal if diagonal is not None else zero.outputs[0]
    outside = ir.node("Less", [right.outputs[0], k]) if upper else ir.node("Greater", [right.outputs[0], k])
    nothing = _constant(0, x.dtype.numpy())
    return [*made, right, outside, nothing, ir.node("Where", [outside.outputs[0], nothing.outputs[0], x])]


def _hard_swish(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    del opset
    gate = ir.node("HardSigmoid", [node.inputs[0]], {"alpha": 1 / 6, "beta": 0.5})
    return [gate, ir.node("Mul", [node.inputs[0], gate.outputs[0]])]


def _mish(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    del opset
    soft = ir.node("Softplus", [node.inputs[0]])
    gate = ir.node("Tanh", soft.outputs)
    return [soft, gate, ir.node("Mul", [node.inputs[0], gate.outputs[0]])]


def _or_equal(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    """With Or, since a comparison with NaN is false."""
    del opset
    strict = ir.node("Greater" if node.op_type == "GreaterOrEqual" else "Less", node.inputs)
    equal = ir.node("Equal", node.inputs)
    return [strict, equal, ir.node("Or", [strict.outputs[0], equal.outputs[0]])]


def _extreme(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    """Integers by comparison; only floating dtypes have the operator."""
    del opset
    inputs = list(node.inputs)
    if len(inputs) != 2 or not _is_integer(inputs[0]):
        return [node]
    first = ir.node("Less" if node.op_type == "Min" else "Greater", inputs)
    return [first, ir.node("Where", [first.outputs[0], *inputs])]


def _clip(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    """Integers by comparisons; only floating dtypes have the operator."""
    del opset
    value = node.inputs[0]
    if value is None or not _is_integer(value):
        return [node]
    made: list[ir.Node] = []
    # NOTE: as the operator itself, it takes the largest value where the least one is larger.
    for bound, beyond in ((_input(node, 1), "Less"), (_input(node, 2), "Greater")):
        if bound is not None:
            outside = ir.node(beyond, [value, bound])
            made += [outside, ir.node("Where", [outside.outputs[0], bound, value])]
            value = made[-1].outputs[0]
    return made or [ir.node("Identity", [value])]


def _shape(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    """All sizes, of which the wanted ones are taken."""
    del opset
    whole = ir.node("Shape", [node.inputs[0]])
    bounds = {name: node.attributes[name].value for name in ("start", "end") if name in node.attributes}
    if bounds.get("start", 0) == 0 and "end" not in bounds:
        return [whole]
    start, end = _constant([bounds.get("start", 0)]), _constant([bounds.get("end", np.iinfo(np.int64).max)])
    return [whole, start, end, ir.node("Slice", [whole.outputs[0], start.outputs[0], end.outputs[0]])]


def _reshape(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """A size of 0 means the size of the input there. The sizes of a tensor are not 0, unless it is empty; most such runs fail."""
    del opset
    sizes, producer = _numbers(node.inputs[1]), node.inputs[1].producer() if node.inputs[1] is not None else None
    may_be_zero = (producer is None or producer.op_type != "Shape") if sizes is None else 0 in sizes
    asked = _attribute(node, "allowzero", default=False)
    return None if asked and may_be_zero else [ir.node("Reshape", node.inputs)]


def _batch_normalization(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    del opset
    trains = _attribute(node, "training_mode", default=False)
    return None if trains else [ir.node("BatchNormalization", node.inputs, _attributes(node, "training_mode"))]


def _pow(node: ir.Node, opset: int) -> Sequence[ir.Node] | None:
    """Both numbers have one floating dtype."""
    del opset
    base, exponent = node.inputs
    if base is None or exponent is None or base.dtype is None or exponent.dtype is None:
        return None
    wide = base.dtype if base.dtype.is_floating_point() else ir.DataType.DOUBLE
    made, inputs = [], []
    for value in (base, exponent):
        if value.dtype == wide:
            inputs.append(value)
        else:
            made.append(ir.node("Cast", [value], {"to": wide}))
            inputs.append(made[-1].outputs[0])
    made.append(ir.node("Pow", inputs))
    return made if wide == base.dtype else [*made, ir.node("Cast", made[-1].outputs, {"to": base.dtype})]


def _resize(node: ir.Node, opset: int) -> Sequence[ir.Node]:
    """Until opset 12 region and scales are required, and may be empty."""
    del opset
    inputs = [*node.inputs, *[None] * (3 - len(node.inputs))]
    empty = [_constant([], np.float32) for each in inputs[1:3] if each is None]
    missing = iter(empty)
    inputs[1:3] = [next(missing).outputs[0] if each is None else each for each in inputs[1:3]]
    return [*empty, ir.node("Resize", inputs, node.attributes)]


_WAYS: dict[str, tuple[int, Way]] = {
    **dict.fromkeys(
        (
            "ReduceMax",
            "ReduceMin",
            "ReduceMean",
            "ReduceProd",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceSumSquare",
        ),
        (BUILT, _with_axes),
    ),
    **dict.fromkeys(("ReduceSum", "Squeeze", "Unsqueeze"), (13, _with_axes)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, _softmax)),
    **dict.fromkeys(("Max", "Min"), (12, _extreme)),
    **dict.fromkeys(("GreaterOrEqual", "LessOrEqual"), (12, _or_equal)),
    "Split": (BUILT, _split),
    "Pad": (BUILT, _pad),
    "Resize": (13, _resize),
    "Mish": (BUILT, _mish),
    "LayerNormalization": (17, _layer_normalization),
    "CastLike": (15, _cast_like),
    "Shape": (15, _shape),
    "BatchNormalization": (14, _batch_normalization),
    "HardSwish": (14, _hard_swish),
    "Reshape": (14, _reshape),
    "Trilu": (14, _trilu),
    "Clip": (12, _clip),
    "Pow": (12, _pow),
}
"""How operators are written for opsets before the one that has their present form."""
