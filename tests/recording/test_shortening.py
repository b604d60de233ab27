"""Operators that do nothing, or that do the work of the one before them as well, are left out; the model stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from recording.reference import SETTINGS, Array, Draw, arrays_are_equal, evaluated, ints, referenced

from onnxplain.recording import Recorder, Tensor, op, recording

Step = tuple[str, Sequence[Array], Mapping[str, Any]]
"""An operator, its constants, and its attributes. The data is its first input."""

FLOAT = int(ir.DataType.FLOAT)


def reshaped(draw: Draw, shape: tuple[int, ...]) -> Step:
    if 0 in shape:
        # NOTE: a 0 means the size 0 here.
        return "Reshape", [ints(draw(st.permutations(shape)))], {"allowzero": 1}
    sizes = list(draw(st.permutations(shape))) + draw(st.sampled_from([[], [1]]))
    copied = [place < len(shape) and shape[place] == size and draw(st.booleans()) for place, size in enumerate(sizes)]
    sizes = [0 if is_copied else size for is_copied, size in zip(copied, sizes, strict=True)]
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return "Reshape", [ints(sizes)], {"allowzero": None if 0 in sizes else draw(st.sampled_from([None, 0, 1]))}


def squeezed(draw: Draw, shape: tuple[int, ...]) -> Step:
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    chosen = [axis - len(shape) if draw(st.booleans()) else axis for axis in ones if draw(st.booleans())]
    return "Squeeze", [ints(chosen)] if chosen else [], {}


def unsqueezed(draw: Draw, shape: tuple[int, ...]) -> Step:
    count = draw(st.integers(1, 2))
    rank = len(shape) + count
    axes = st.lists(st.integers(-rank, rank - 1), min_size=count, max_size=count, unique_by=lambda axis: axis % rank)
    return "Unsqueeze", [ints(draw(axes))], {}


def transposed(draw: Draw, shape: tuple[int, ...]) -> Step:
    return "Transpose", [], {"perm": draw(st.permutations(range(len(shape))) | st.none()) if shape else None}


def expanded(draw: Draw, shape: tuple[int, ...]) -> Step:
    target = [size if draw(st.booleans()) else 1 for size in shape]
    target = [draw(st.integers(1, 3)) if size == 1 and wanted == 1 else wanted for size, wanted in zip(shape, target, strict=True)]
    return "Expand", [ints([*draw(st.sampled_from([[], [1], [2]])), *target][draw(st.integers(0, len(shape))) :])], {}


def neutral(draw: Draw, shape: tuple[int, ...]) -> Step:
    name = draw(st.sampled_from(["Add", "Sub", "Mul", "Div"]))
    number = draw(st.sampled_from([0.0, 1.0]))
    return name, [np.full(draw(st.sampled_from([(), (1,), (1, 1), (1, 1, 1, 1), shape])), number, dtype=np.float32)], {}


def plain(draw: Draw, shape: tuple[int, ...]) -> Step:
    return draw(  # type: ignore[no-any-return]
        st.sampled_from(
            [
                ("Identity", [], {}),
                ("Cast", [], {"to": FLOAT}),
                ("Concat", [], {"axis": 0}) if shape else ("Identity", [], {}),
                ("CastLike", [np.zeros(2, dtype=np.float32)], {}),
                # NOTE: the reference does not flatten empty tensors (onnx 1.23).
                ("Flatten", [], {"axis": draw(st.integers(-len(shape), len(shape)))}) if 0 not in shape else ("Neg", [], {}),
                ("Neg", [], {}),
            ]
        )
    )


@st.composite
def chains(draw: Draw) -> tuple[list[Array], list[Step], list[bool]]:
    """The data and the result of each operator; the operators; and which sizes are known."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    values = [np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)]
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([reshaped, squeezed, unsqueezed, transposed, expanded, neutral, plain]))
        steps.append(kind(draw, values[-1].shape))
        values.append(applied(steps[-1], values[-1]))
        hypothesis.assume(values[-1].ndim < 7)
    return values, steps, [draw(st.booleans()) for _ in range(8)]


def applied(step: Step, data: Array) -> Array:
    name, constants, attributes = step
    return referenced(name, [data, *constants], attributes)


def recorded(values: Sequence[Array], steps: Sequence[Step], known: Sequence[bool]) -> tuple[ir.Value, ir.Value, Recorder]:
    """The input, the result and the recorder of a chain. A size that is not known is None."""
    recorder = Recorder(18)
    x = result = Tensor(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=seen(values[0], known))
    with recording(recorder, onnxscript=False):
        for (name, constants, attributes), value in zip(steps, values[1:], strict=True):
            (result,) = recorder.emit(name, [result, *constants], attributes, outputs=1)
            if result.producer() is not None and known[-1]:
                result.shape = seen(value, known)
    return x, result, recorder


def seen(data: Array, known: Sequence[bool]) -> ir.Shape:
    return ir.Shape([size if is_known else None for size, is_known in zip(data.shape, known, strict=False)])


def model_of(x: ir.Value, result: ir.Value, recorder: Recorder) -> onnx.ModelProto:
    output = ir.Value(name="y", type=ir.TensorType(ir.DataType.FLOAT))
    nodes = [*recorder.nodes, ir.Node("", "Identity", [result], outputs=[output])]
    for position, value in enumerate(value for node in nodes for value in node.outputs):
        value.name = value.name or f"value_{position}"
    graph = ir.Graph([x], [output], nodes=nodes, initializers=list(recorder.constants.values()), opset_imports={"": 18}, name="chain")
    return ir.serde.serialize_model(ir.Model(graph, ir_version=10))


@hypothesis.settings(SETTINGS, max_examples=400)
@hypothesis.given(chains())
def test_a_chain_equals_the_reference(example: tuple[list[Array], list[Step], list[bool]]) -> None:
    values, _, _ = example
    arrays_are_equal(evaluated(model_of(*recorded(*example)), {"x": values[0]}), values[-1])


X = np.zeros((2, 3, 4), dtype=np.float32)
ZERO, ONE = np.zeros(1, dtype=np.float32), np.ones(1, dtype=np.float32)
SHORTENED: dict[str, tuple[list[Step], list[str]]] = {
    "reshapes": ([("Reshape", [ints([6, 4])], {}), ("Reshape", [ints([4, -1])], {})], ["Reshape"]),
    "reshapes-of-three": ([("Reshape", [ints([6, 4])], {}), ("Unsqueeze", [ints([0])], {}), ("Reshape", [ints([-1])], {})], ["Reshape"]),
    "reshape-of-flat": ([("Flatten", [], {"axis": 1}), ("Reshape", [ints([6, 4])], {})], ["Reshape"]),
    "reshape-of-squeezed": ([("Unsqueeze", [ints([1])], {}), ("Squeeze", [ints([1])], {}), ("Reshape", [ints([6, 4])], {})], ["Reshape"]),
    "reshape-back": ([("Reshape", [ints([6, 4])], {}), ("Reshape", [ints([2, 3, 4])], {})], []),
    "copied-size": ([("Reshape", [ints([3, 2, 4])], {}), ("Reshape", [ints([0, 8])], {})], ["Reshape", "Reshape"]),
    "squeeze-back": ([("Unsqueeze", [ints([2, 0])], {}), ("Squeeze", [ints([0, 2])], {})], []),
    "squeeze-of-others": ([("Unsqueeze", [ints([0, 2])], {}), ("Squeeze", [ints([0])], {})], ["Unsqueeze", "Squeeze"]),
    "unsqueezes": ([("Unsqueeze", [ints([0])], {}), ("Unsqueeze", [ints([-1, 1])], {})], ["Unsqueeze"]),
    "transpositions": ([("Transpose", [], {"perm": [1, 2, 0]}), ("Transpose", [], {"perm": [1, 0, 2]})], ["Transpose"]),
    "transposed-back": ([("Transpose", [], {"perm": [1, 2, 0]}), ("Transpose", [], {"perm": [2, 0, 1]})], []),
    "nothing": ([("Identity", [], {}), ("Cast", [], {"to": FLOAT}), ("Concat", [], {"axis": 0})], []),
    "same-shape-with-ones": (
        [("Unsqueeze", [ints([0, 1])], {}), ("Neg", [], {}), ("Reshape", [ints([1, 1, 2, 3, 4])], {})],
        ["Unsqueeze", "Neg"],
    ),
    "same-shape": ([("Reshape", [ints([2, -1, 4])], {}), ("Expand", [ints([3, 1])], {}), ("Transpose", [], {"perm": [0, 1, 2]})], []),
    "neutral": (
        [(name, [np.array([number], dtype=np.float32)], {}) for name, number in (("Add", 0), ("Sub", 0), ("Mul", 1), ("Div", 1))],
        [],
    ),
    "neutral-of-another": ([("Mul", [ZERO], {}), ("Add", [ONE], {})], ["Mul", "Add"]),
    "neutral-that-adds-dims": ([("Add", [np.zeros((1, 1, 1, 1), dtype=np.float32)], {})], ["Add"]),
    "no-padding": ([("Pad", [ints([0] * 6)], {})], []),
    "padding": ([("Pad", [ints([0, 0, 0, 0, 0, 1])], {})], ["Pad"]),
    "larger": ([("Expand", [ints([2, 1, 1, 1])], {})], ["Expand"]),
}


@pytest.mark.parametrize("name", SHORTENED)
def test_what_is_left(name: str) -> None:
    """The operators between the input and the result; those before may be unused by then."""
    steps, left = SHORTENED[name]
    values = [X]
    for step in steps:
        values.append(applied(step, values[-1]))
    x, value, _ = recorded(values, steps, [True] * 8)
    operators = []
    while value is not x:
        node = value.producer()
        assert node is not None
        operators.append(node.op_type)
        value = next(each for each in node.inputs if each is not None)
    assert operators[::-1] == left


@pytest.mark.parametrize(("name", "number", "is_same"), [("Add", 0, True), ("Mul", 1, True), ("Sub", 0, False), ("Div", 1, False)])
def test_a_neutral_first_operand(name: str, number: float, is_same: bool) -> None:
    recorder = Recorder(18)
    x = Tensor(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    with recording(recorder, onnxscript=False):
        assert (getattr(op, name)(np.float32(number), x) is x) is is_same


@pytest.mark.parametrize(
    ("inputs", "attributes", "count"),
    [
        ([None, None, ints([1, 1, 2, 3])], {}, 0),
        ([None, None, ints([1, 1, 2, 4])], {}, 1),
        ([None, None, ints([1, 1, 2, 3])], {"coordinate_transformation_mode": "tf_crop_and_resize"}, 1),
        ([None, None, ints([1, 1, 2, 3])], {"axes": [0, 1, 2, 3]}, 1),
        ([None, np.ones(4, dtype=np.float32)], {}, 1),
        ([None, np.ones(4, dtype=np.float32), None], {}, 1),
    ],
    ids=["same-sizes", "other-sizes", "crop", "axes", "scales", "no-sizes"],
)
def test_a_resize_to_the_same_sizes_is_left_out(inputs: Sequence[Array | None], attributes: Mapping[str, Any], count: int) -> None:
    recorder = Recorder(18)
    x = Tensor(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 1, 2, 3]))
    with recording(recorder, onnxscript=False):
        recorder.emit("Resize", [x, *(None if each is None else recorder.constant(each) for each in inputs)], attributes, outputs=1)
    assert len(recorder.nodes) == count
