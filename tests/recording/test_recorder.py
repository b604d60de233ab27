"""What the recorder makes of the calls on `op` and of Python's operators: nodes, constants and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from benchmarks.coverage.kernels import lacking

from onnxplain.recording import LIMIT, Recorder, Tensor, UnknownArgument, kernels, op, recording, uniform_number

FLOAT, HALF, NARROW = ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16
LONG, BOOL = ir.DataType.INT64, ir.DataType.BOOL


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """The recorder that records what the test calls."""
    running = Recorder(18)
    with recording(running, onnxscript=False):
        yield running


def value(dtype: ir.DataType | None = FLOAT, *shape: int | None) -> Tensor:
    return Tensor(name="x", type=None if dtype is None else ir.TensorType(dtype), shape=ir.Shape(shape or (2, 3)))


def constant_of(given: ir.Value | None) -> Any:
    assert given is not None
    assert given.const_value is not None
    return given.const_value.numpy().tolist()


# The operator, and the place of the tensor among its inputs.
OPERATORS: Mapping[str, tuple[Callable[[Any], Any], ir.DataType, str, int]] = {
    "x + 3": (lambda x: x + 3, FLOAT, "Add", 0),
    "3 + x": (lambda x: 3 + x, FLOAT, "Add", 1),
    "x - 3": (lambda x: x - 3, FLOAT, "Sub", 0),
    "3 - x": (lambda x: 3 - x, FLOAT, "Sub", 1),
    "x * 3": (lambda x: x * 3, FLOAT, "Mul", 0),
    "3 * x": (lambda x: 3 * x, FLOAT, "Mul", 1),
    "x / 3": (lambda x: x / 3, FLOAT, "Div", 0),
    "3 / x": (lambda x: 3 / x, FLOAT, "Div", 1),
    "x ** 3": (lambda x: x**3, FLOAT, "Pow", 0),
    "x % 3": (lambda x: x % 3, FLOAT, "Mod", 0),
    "x @ x": (lambda x: x @ x, FLOAT, "MatMul", 0),
    "-x": (lambda x: -x, FLOAT, "Neg", 0),
    "x & True": (lambda x: x & True, BOOL, "And", 0),
    "True & x": (lambda x: True & x, BOOL, "And", 1),
    "x | True": (lambda x: x | True, BOOL, "Or", 0),
    "True | x": (lambda x: True | x, BOOL, "Or", 1),
    "x < 3": (lambda x: x < 3, FLOAT, "Less", 0),
    "x <= 3": (lambda x: x <= 3, FLOAT, "LessOrEqual", 0),
    "x > 3": (lambda x: x > 3, FLOAT, "Greater", 0),
    "x >= 3": (lambda x: x >= 3, FLOAT, "GreaterOrEqual", 0),
    "x != 3": (lambda x: x != 3, FLOAT, "Not", -1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_python_operators_become_nodes(recorder: Recorder, name: str) -> None:
    function, dtype, op_type, place = OPERATORS[name]
    x = value(dtype)
    result = function(x)
    node = result.producer()
    assert node.op_type == op_type
    assert result.dtype is (BOOL if op_type in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not") else dtype)
    if place < 0:
        node = node.inputs[0].producer()
        assert node.op_type == "Equal"
    assert node.inputs[max(place, 0)] is x
    for each in node.inputs:
        # Pow's exponent has its own dtype.
        assert each is x or (constant_of(each) in (3, True) and each.dtype is (LONG if op_type == "Pow" else dtype))
    assert recorder.nodes[-1] is result.producer()
    assert recorder.take() != []
    assert recorder.take() == []


@pytest.mark.parametrize(("dtype", "fmod"), [(FLOAT, 1), (LONG, 0), (None, 0)])
def test_remainders_of_floats_are_those_of_c(recorder: Recorder, dtype: ir.DataType | None, fmod: int) -> None:
    (value(dtype) % value(dtype)).producer()
    assert recorder.nodes[-1].attributes["fmod"].as_int() == fmod


def test_rank(recorder: Recorder) -> None:
    assert value(FLOAT, 2, None, 3).rank == 3
    assert Tensor().rank is None
    assert recorder.nodes == []


def test_constants_take_the_dtype_beside_them(recorder: Recorder) -> None:
    for x in (value(HALF), value(LONG)):
        assert op.Add(1, x).producer().inputs[0].dtype is x.dtype
        assert op.Where(value(BOOL), 1, x).producer().inputs[1].dtype is x.dtype
        assert op.Max(x, 1, 2).dtype is x.dtype
    # The shape is int64 whatever the data is, and so is an empty one.
    assert [op.Reshape(value(), shape).producer().inputs[1].dtype for shape in ([6.0], [6], [])] == [LONG] * 3
    assert op.Gather(value(), 0).producer().inputs[1].dtype is LONG
    assert recorder.constant([1, 2.0]).dtype is FLOAT
    assert recorder.constant(np.ones(1, dtype=np.int8)).dtype is ir.DataType.INT8
    assert op.Add(value(None), 1).dtype is LONG


def test_dtypes_of_outputs(recorder: Recorder) -> None:
    x = value(HALF)
    assert op.Cast(x, to=LONG).dtype is LONG
    assert op.Shape(value(FLOAT, None, 2)).dtype is LONG
    assert op.IsNaN(x).dtype is BOOL
    assert [each.dtype for each in op.TopK(x, [1])] == [HALF, LONG]
    assert op.Neg(value(None)).dtype is None
    sequence = op.SequenceConstruct(x, x)
    assert op.SequenceAt(sequence, 0).type == ir.TensorType(HALF)
    assert op.SequenceAt(op.SequenceConstruct(value(None)), 0).type is None
    assert sequence.type == ir.SequenceType(ir.TensorType(HALF))
    assert op.SequenceInsert(sequence, x).producer().inputs == (sequence, x)
    assert op.SequenceConstruct(value(None)).type == ir.SequenceType(ir.TensorType(ir.DataType.UNDEFINED))
    assert op.SequenceEmpty(dtype=LONG).type == ir.SequenceType(ir.TensorType(LONG))
    assert op.SequenceEmpty().type == ir.SequenceType(ir.TensorType(FLOAT))
    assert recorder.nodes[-1].op_type == "SequenceEmpty"


@pytest.mark.parametrize("dtype", [HALF, NARROW, FLOAT])
def test_operators_without_narrow_floats_compute_in_float32(recorder: Recorder, dtype: ir.DataType) -> None:
    result = op.Range(value(dtype), 10, value(dtype))
    nodes = {node.op_type: node for node in recorder.nodes}
    casts = 0 if dtype is FLOAT else 3
    assert result.dtype is dtype
    assert len(recorder.nodes) == casts + 1
    assert [each.dtype for each in (*nodes["Range"].inputs, *nodes["Range"].outputs)] == [FLOAT] * 4


@pytest.mark.parametrize("dtype", [HALF, NARROW, FLOAT])
def test_operators_with_narrow_floats_compute_in_them(recorder: Recorder, dtype: ir.DataType) -> None:
    assert op.Add(value(dtype), 1).dtype is dtype
    assert [node.op_type for node in recorder.nodes] == ["Add"]


def test_several_outputs_return_to_the_narrow_float(recorder: Recorder) -> None:
    values, places = op.TopK(value(NARROW), [1])
    assert (values.dtype, places.dtype) == (NARROW, LONG)
    assert sorted(node.op_type for node in recorder.nodes) == ["Cast", "Cast", "TopK"]


STAND_INS: Mapping[str, tuple[Callable[[ir.Value], Any], ir.DataType, ir.DataType]] = {
    # ONNX does not define these.
    "Sign of bools": (lambda x: op.Sign(x), BOOL, ir.DataType.UINT8),
    "IsNaN of ints": (lambda x: op.IsNaN(x), LONG, ir.DataType.DOUBLE),
    "Conv of ints": (lambda x: op.Conv(x, x), LONG, FLOAT),
    # ONNX Runtime has no kernels for these.
    "Where of bools": (lambda x: op.Where(op.Not(x), x, x), BOOL, ir.DataType.UINT8),
    "Trilu of bytes": (lambda x: op.Trilu(x), ir.DataType.UINT8, ir.DataType.INT32),
    "a reduction of bools": (lambda x: op.ScatterND(x, value(LONG), x, reduction="max"), BOOL, ir.DataType.UINT8),
    "a reduction of float16": (lambda x: op.ScatterND(x, value(LONG), x, reduction="add"), HALF, FLOAT),
}


@pytest.mark.parametrize("name", STAND_INS)
def test_operators_compute_in_a_dtype_that_has_a_kernel(recorder: Recorder, name: str) -> None:
    make, given, stand_in = STAND_INS[name]
    result = make(value(given))
    assert result.dtype in (given, BOOL)
    (node,) = [node for node in recorder.nodes if node.op_type not in ("Cast", "Not")]
    assert stand_in in [each.dtype for each in node.inputs]
    assert given not in [each.dtype for each in node.inputs[1:]]


def test_dtypes_with_a_kernel_need_no_cast(recorder: Recorder) -> None:
    op.Where(value(BOOL), value(LONG), value(LONG))
    assert [node.op_type for node in recorder.nodes] == ["Where"]


@pytest.mark.skipif(onnxruntime.__version__ not in (kernels.__doc__ or ""), reason="the table is that of another version")
def test_the_table_of_kernels_is_that_of_onnx_runtime() -> None:
    assert lacking() == kernels.LACKING


def test_every_output_of_a_split_has_its_dtype(recorder: Recorder) -> None:
    assert [each.dtype for each in op.Split(value(HALF), num_outputs=3)] == [HALF] * 3


def test_cast_like_a_known_dtype_is_a_cast(recorder: Recorder) -> None:
    assert op.CastLike(value(), value(LONG)).dtype is LONG
    op.CastLike(value(), value(None))
    assert [node.op_type for node in recorder.nodes] == ["Cast", "CastLike"]


def test_numbers_like_a_known_dtype_keep_their_digits(recorder: Recorder) -> None:
    double, half = op.CastLike(0.1, value(ir.DataType.DOUBLE)), op.CastLike(0.1, value(HALF))
    assert (double.dtype, constant_of(double)) == (ir.DataType.DOUBLE, 0.1)
    assert (half.dtype, constant_of(half)) == (HALF, float(np.float16(0.1)))
    assert constant_of(op.CastLike(1.5, value(LONG))) == 1
    assert recorder.nodes == []


@pytest.mark.parametrize(
    ("argument", "nearest", "is_int"), [("axes", "axis", True), ("inputs", "input", False), ("qqqq", None, False)], ids=str
)
def test_unknown_arguments(recorder: Recorder, argument: str, nearest: str | None, is_int: bool) -> None:
    with pytest.raises(UnknownArgument) as caught:
        op.Softmax(value(), **{argument: 1})
    assert (caught.value.name, caught.value.nearest, caught.value.is_int) == (argument, nearest, is_int)
    assert len(caught.value.args) == 1
    assert repr(argument) in str(caught.value)
    assert recorder.nodes == []


WRONG: Mapping[str, Callable[[], Any]] = {
    "no second operand": lambda: op.Add(value()),
    "no attribute": lambda: op.Cast(value()),
    "three operands": lambda: op.Add(value(), value(), value()),
    "split into sizes": lambda: op.Split(value(), [1, 1]),
    "constant without a value": lambda: op.Constant(),
    "attribute that is no constant": lambda: op.LeakyRelu(value(), alpha=value()),
    "attribute with a part that is no constant": lambda: op.Conv(value(), value(), dilations=[1, value(LONG)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_calls_that_do_not_fit(recorder: Recorder, name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        WRONG[name]()
    assert recorder.nodes == []


def test_there_is_no_such_operator() -> None:
    with pytest.raises(AttributeError):
        op.Addition  # noqa: B018  the look-up fails


def test_arguments_by_name_and_by_place(recorder: Recorder) -> None:
    clipped = op.Clip(value(), max=2).producer()
    assert [each is None for each in clipped.inputs] == [False, True, False]
    assert len(op.Clip(value(), 1).producer().inputs) == 2
    # Attributes follow the inputs.
    assert op.Softmax(value(), 1).producer().attributes["axis"].as_int() == 1
    leaky = op.LeakyRelu(value(), alpha=2).producer().attributes["alpha"]
    assert (leaky.type, leaky.value) == (ir.AttributeType.FLOAT, 2.0)
    assert op.Gelu(value()).producer().version == 20
    assert recorder.nodes[0] is clipped


def test_numbers_of_outputs(recorder: Recorder) -> None:
    assert len(op.Split(value(), num_outputs=2)) == 2
    statistics = [value(FLOAT, 3) for _ in range(4)]
    assert isinstance(op.BatchNormalization(value(), *statistics), Tensor)
    assert len(op.BatchNormalization(value(), *statistics, training_mode=1)) == 3
    assert [len(node.outputs) for node in recorder.nodes] == [2, 1, 3]


def test_attributes_keep_their_type(recorder: Recorder) -> None:
    given = {"mode": "linear", "antialias": True, "cubic_coeff_a": 0.5, "axes": [0, 1], "exclude_outside": None}
    recorder.emit("Resize", [value(), None, None, [2, 2]], given, outputs=1)
    kinds = ir.AttributeType
    made = {name: (each.type, each.value) for name, each in recorder.nodes[-1].attributes.items()}
    assert made == {
        "mode": (kinds.STRING, "linear"),
        "antialias": (kinds.INT, 1),
        "cubic_coeff_a": (kinds.FLOAT, 0.5),
        "axes": (kinds.INTS, (0, 1)),
    }
    counts = {"ngram_counts": [0], "ngram_indexes": [0, 1], "pool_int64s": [1, 2], "weights": [1.0, 2.5]}
    sizes = {"max_gram_length": 1, "max_skip_count": 0, "min_gram_length": 1}
    recorder.emit("TfIdfVectorizer", [value(LONG)], {"mode": "TF", **counts, **sizes}, outputs=1)
    assert recorder.nodes[-1].attributes["weights"].type is kinds.FLOATS
    with pytest.raises(TypeError):
        recorder.emit("Transpose", [value()], {"perm": [1, 0.5]}, outputs=1)


def test_equal_small_constants_are_one(recorder: Recorder) -> None:
    one = recorder.constant(1)
    assert recorder.constant(1) is one
    assert recorder.constant(np.int64(1)) is one
    assert recorder.constant([1, 2]) is recorder.constant((1, 2))
    others = [recorder.constant(each) for each in (True, 1.0, [1], "1", 0.0, -0.0, [0.0], [-0.0])]
    assert len({id(each) for each in (one, *others)}) == 9
    assert recorder.constant(1, FLOAT) is others[1]
    for size, is_one in ((LIMIT, True), (LIMIT + 1, False)):
        assert (recorder.constant(np.ones(size)) is recorder.constant(np.ones(size))) is is_one
    assert constant_of(recorder.constant(1 + 2j)) == [1.0, 2.0]
    names = [each.name for each in recorder.constants.values()]
    assert len(set(names)) == len(names) == len(recorder.constants)


def test_constants_by_operator(recorder: Recorder) -> None:
    assert op.Constant(value_int=1) is recorder.constant(1)
    assert op.Constant(value_float=1) is recorder.constant(1.0)
    assert op.Constant(value_ints=[1, 2]) is recorder.constant([1, 2])
    assert op.Constant(value_floats=[1, 2]) is recorder.constant([1.0, 2.0])
    assert op.Constant(value=ir.tensor([1])) is recorder.constant([1])
    assert op.Constant(value=np.ones(2, dtype=np.float32)).dtype is FLOAT
    assert op.Constant(value_string="a") is recorder.constant("a")
    assert recorder.nodes == []


def test_shapes_with_sizes_known_at_run_time(recorder: Recorder) -> None:
    size = Tensor(name="size", type=ir.TensorType(LONG), shape=ir.Shape([]))
    vector = value(LONG, 1)
    shape = op.Reshape(value(), [size, 4, vector]).producer().inputs[1].producer()
    assert shape.op_type == "Concat"
    flat, four, last = shape.inputs
    assert (flat.producer().op_type, constant_of(four), last) == ("Reshape", [4], vector)
    assert constant_of(flat.producer().inputs[1]) == [-1]
    assert op.Reshape(value(), [vector]).producer().inputs[1] is vector
    of_any_rank = op.Reshape(value(), [Tensor(type=ir.TensorType(LONG))]).producer().inputs[1]
    assert of_any_rank.producer().op_type == "Reshape"
    assert recorder.nodes[-1].op_type == "Reshape"


def test_uniform_numbers(recorder: Recorder) -> None:
    assert uniform_number(recorder.constant([2, 2])) == 2
    assert uniform_number(recorder.constant([2, 3])) is None
    assert uniform_number(recorder.constant([3.5])) == 3.5
    assert uniform_number(recorder.constant([])) is None
    assert uniform_number(value()) is None
    large = op.Expand(recorder.constant([7]), [LIMIT + 1])
    assert large.producer().op_type == "Expand"
    assert uniform_number(large) == 7
    assert uniform_number(op.Expand(value(FLOAT, 1), [LIMIT])) is None
    for name in ("Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze"):
        # NOTE: `Squeeze` and `Transpose` need no other input.
        assert uniform_number(ir.node(name, [large]).outputs[0]) == 7
    assert uniform_number(ir.node("Neg", [large]).outputs[0]) is None
    assert uniform_number(ir.node("Transpose", [None]).outputs[0]) is None
    foreign = ir.node("Transpose", [large], domain="custom")
    assert uniform_number(foreign.outputs[0]) is None


def test_two_unsqueezes_are_one_of_the_same_axes(recorder: Recorder) -> None:
    x = value(FLOAT, 5, 6)
    once = op.Unsqueeze(x, [1])
    for outer in ([-1], [0], [1], [3, -4], [2]):
        node = op.Unsqueeze(once, outer).producer()
        assert node.inputs[0] is x
        wanted = np.expand_dims(np.zeros((5, 1, 6)), tuple(outer))
        assert np.expand_dims(np.zeros((5, 6)), tuple(constant_of(node.inputs[1]))).shape == wanted.shape


def test_operators_of_unknown_domains(recorder: Recorder) -> None:
    from onnxscript.values import Opset

    x = value()
    with recording(recorder, onnxscript=True):
        result = Opset("com.example", 3).Twice(x, 2, None, alpha=1.5, beta=None)
    node = result.producer()
    assert (node.domain, node.op_type, node.version, node.outputs) == ("com.example", "Twice", 3, (result,))
    assert (node.inputs[0], constant_of(node.inputs[1]), node.inputs[2]) == (x, 2, None)
    assert {name: each.value for name, each in node.attributes.items()} == {"alpha": 1.5}
    assert recorder.nodes == [node]
