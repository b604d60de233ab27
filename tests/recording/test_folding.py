"""Folding computes what ONNX's reference implementation computes, with the same dtype and shape, or nothing."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis
import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from recording.reference import SETTINGS, Array, Draw, arrays_are_equal, ints, referenced

from onnxplain.recording import LIMIT, Recorder, recording
from onnxplain.recording.semantics import OPERATORS

Example = tuple[Sequence[Array | None], Mapping[str, Any]]
"""The inputs and the attributes of an operator."""

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
SOLID = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3)


DTYPES = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in {
        **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
        "float16": "float16",
        "float": "float32",
        "double": "float64",
        "bool": "bool",
        "bfloat16": ml_dtypes.bfloat16,
    }.items()
}
"""The dtypes that folding may meet, by ONNX's names."""


def dtypes(name: str, position: int = 0) -> st.SearchStrategy[np.dtype[Any]]:
    """The dtypes that an operator of opset 18 takes as an input."""
    schema = onnx.defs.get_schema(name, 18)
    return st.sampled_from([DTYPES[each] for each in sorted(schema.inputs[min(position, len(schema.inputs) - 1)].types) if each in DTYPES])


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """Numbers with the extremes of the dtype, zeros of both signs, infinities and NaN."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return st.integers(max(limits.min, -9), 9) | st.sampled_from([int(limits.min), int(limits.max), int(limits.max) - 1])
    small = st.integers(-40, 40).map(lambda number: number / 8)
    return small | st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4, 1e-5])


@st.composite
def arrays(draw: Draw, dtype: np.dtype[Any], shape: tuple[int, ...] | None = None) -> Array:
    shape = draw(SHAPES) if shape is None else shape
    count = int(np.prod(shape))
    values = draw(st.lists(elements(dtype), min_size=count, max_size=count))
    return np.array(values, dtype=np.float64 if dtype.kind not in "iub" else dtype).astype(dtype).reshape(shape)


# Each strategy draws the inputs and the attributes of one operator.


@st.composite
def elementwise(draw: Draw, name: str, count: int) -> Example:
    dtype = draw(dtypes(name))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3, min_side=0)).input_shapes
    return [draw(arrays(dtype, shape)) for shape in shapes], {}


@st.composite
def variadic(draw: Draw, name: str) -> Example:
    return draw(elementwise(name, draw(st.integers(1, 3))))  # type: ignore[no-any-return]


@st.composite
def powers(draw: Draw) -> Example:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3)).input_shapes
    return [draw(arrays(draw(dtypes("Pow", position)), shape)) for position, shape in enumerate(shapes)], {}


@st.composite
def casts(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Cast"))))
    target = draw(st.sampled_from(list(DTYPES.values())))
    if target.kind in "iu":
        # NOTE: ONNX does not define the cast of a number to an int that cannot hold it.
        limits = np.iinfo(target)
        with np.errstate(all="ignore"):
            wide = data.astype(np.float64)
        hypothesis.assume(bool((np.isfinite(wide) & (wide >= limits.min) & (wide <= limits.max / 2)).all()))
    return [data], {"to": onnx.helper.np_dtype_to_tensor_dtype(target)}


@st.composite
def likes(draw: Draw) -> Example:
    (data,), attributes = draw(casts())
    return [data, np.zeros(draw(SHAPES), dtype=onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))], {}


@st.composite
def concats(draw: Draw) -> Example:
    shape = draw(SOLID)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    dtype = draw(dtypes("Concat"))
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    dims = [list(shape) for _ in sizes]
    for each, size in zip(dims, sizes, strict=True):
        each[axis] = size
    return [draw(arrays(dtype, tuple(each))) for each in dims], {"axis": axis}


@st.composite
def cumulative_sums(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("CumSum")), draw(SOLID)))
    axis = np.array(draw(st.integers(-data.ndim, data.ndim - 1)), dtype=draw(st.sampled_from(["int32", "int64"])))
    flags = st.sampled_from([None, 0, 1])
    return [data, axis], {"exclusive": draw(flags), "reverse": draw(flags)}


@st.composite
def expansions(draw: Draw) -> Example:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0)).input_shapes
    return [draw(arrays(draw(dtypes("Expand")), shapes[0])), ints(shapes[1])], {}


@st.composite
def gathers(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Gather")), draw(SOLID)))
    axis = draw(st.integers(-data.ndim, data.ndim - 1))
    size = data.shape[axis]
    indices = draw(hnp.arrays(draw(st.sampled_from(["int32", "int64"])), SHAPES, elements=st.integers(-size, size - 1)))
    return [data, indices], {"axis": draw(st.sampled_from([axis, None])) if axis == 0 else axis}


@st.composite
def gathers_of_elements(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("GatherElements")), draw(SOLID)))
    axis = draw(st.integers(-data.ndim, data.ndim - 1))
    shape = [draw(st.integers(0, 4 if each == axis % data.ndim else size)) for each, size in enumerate(data.shape)]
    indices = draw(hnp.arrays(np.int64, tuple(shape), elements=st.integers(-data.shape[axis], data.shape[axis] - 1)))
    return [data, indices], {"axis": draw(st.sampled_from([axis, None])) if axis == 0 else axis}


@st.composite
def gathers_of_tuples(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("GatherND")), draw(SOLID)))
    batch = draw(st.integers(0, 1)) if data.ndim > 1 else 0
    length = draw(st.integers(1, data.ndim - batch))
    shape = (*data.shape[:batch], *draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=2)), length)
    columns = [draw(hnp.arrays(np.int64, shape[:-1], elements=st.integers(-size, size - 1))) for size in data.shape[batch : batch + length]]
    return [data, np.stack(columns, axis=-1)], {"batch_dims": draw(st.sampled_from([0, None])) if batch == 0 else batch}


@st.composite
def ranges(draw: Draw) -> Example:
    dtype = draw(dtypes("Range"))
    numbers = [draw(st.integers(-40, 40)) for _ in range(3)]
    return [np.array(number if dtype.kind == "i" else number / 8, dtype=dtype) for number in numbers], {}


@st.composite
def reductions(draw: Draw, name: str) -> Example:
    data = draw(arrays(draw(dtypes(name))))
    axes = draw(st.lists(st.integers(-data.ndim, data.ndim - 1), unique_by=lambda axis: axis % data.ndim)) if data.ndim else []
    given_axes = None if not axes and draw(st.booleans()) else ints(axes)
    flags = st.sampled_from([None, 0, 1])
    return [data, given_axes], {"keepdims": draw(flags), "noop_with_empty_axes": draw(flags)}


@st.composite
def reshapes(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Reshape"))))
    sizes = draw(st.permutations(data.shape)) + draw(st.sampled_from([[], [1]]))
    sizes = [0 if place < data.ndim and data.shape[place] == size and draw(st.booleans()) else size for place, size in enumerate(sizes)]
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    if draw(st.booleans()) and 0 not in data.shape:
        sizes = [-1]
    return [data, ints(sizes)], {"allowzero": draw(st.sampled_from([None, 0, 1]))}


@st.composite
def resizes(draw: Draw) -> Example:
    # NOTE: the reference makes infinities finite (onnx 1.23).
    shape = (1, 1, draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    data = draw(hnp.arrays(np.float32, shape, elements=st.integers(-3, 3).map(float)))
    if draw(st.booleans()):
        data = np.full_like(data, 1.5)
    sizes = ints([1, 1, draw(st.integers(1, 5)), draw(st.integers(1, 5))])
    return [data, None, None, sizes], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@st.composite
def slices(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Slice")), draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))))
    axes = draw(st.lists(st.integers(-data.ndim, data.ndim - 1), min_size=1, unique_by=lambda axis: axis % data.ndim))
    bounds = st.integers(-6, 6) | st.sampled_from([2**63 - 1, -(2**63), 2**31 - 1])
    starts, ends = ([draw(bounds) for _ in axes] for _ in range(2))
    steps = ints([draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in axes])
    inputs = [data, ints(starts), ints(ends)]
    match draw(st.sampled_from(["neither", "axes", "both"])):
        case "neither":
            return inputs, {}
        case "axes":
            return [*inputs, ints(axes)], {}
        case _:
            return [*inputs, ints(axes), steps], {}


@st.composite
def squeezes(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Squeeze"))))
    ones = [axis for axis, size in enumerate(data.shape) if size == 1]
    axes = [axis - data.ndim if draw(st.booleans()) else axis for axis in ones if draw(st.booleans())]
    return [data, None if not axes else ints(axes)], {}


@st.composite
def tiles(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Tile")), draw(SOLID)))
    return [data, ints([draw(st.integers(0, 3)) for _ in data.shape])], {}


@st.composite
def transpositions(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Transpose")), draw(SOLID)))
    return [data], {"perm": draw(st.permutations(range(data.ndim)) | st.none())}


@st.composite
def triangles(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Trilu")), draw(hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=3))))
    diagonal = draw(st.none() | st.integers(-4, 4).map(lambda k: np.array(k, dtype=np.int64)))
    return [data, diagonal], {"upper": draw(st.sampled_from([None, 0, 1]))}


@st.composite
def unsqueezes(draw: Draw) -> Example:
    data = draw(arrays(draw(dtypes("Unsqueeze"))))
    count = draw(st.integers(1, 3))
    rank = data.ndim + count
    axes = draw(st.lists(st.integers(-rank, rank - 1), min_size=count, max_size=count, unique_by=lambda axis: axis % rank))
    return [data, ints(axes)], {}


@st.composite
def choices(draw: Draw) -> Example:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=2, max_side=3)).input_shapes
    dtype = draw(dtypes("Where", 1))
    return [draw(arrays(np.dtype(bool), shapes[0])), draw(arrays(dtype, shapes[1])), draw(arrays(dtype, shapes[2]))], {}


@st.composite
def shapes(draw: Draw) -> Example:
    data = draw(arrays(np.dtype(np.float32)))
    # NOTE: the reference does not clamp indices below the first dim (onnx 1.23).
    bounds = st.none() | st.integers(-data.ndim, 5)
    return [data], {"start": draw(bounds), "end": draw(bounds)}


ROUNDED = ("Cos", "Exp", "Log", "Pow", "Sin")
UNARY = ("Abs", "BitwiseNot", "Ceil", "Cos", "Exp", "Floor", "Identity", "Log", "Neg", "Not", "Reciprocal", "Sign", "Sin", "Sqrt")
BINARY = ("Add", "And", "BitwiseAnd", "BitwiseOr", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mul", "Or", "Sub")

EXAMPLES: dict[str, st.SearchStrategy[Example]] = {
    **{name: elementwise(name, 1) for name in UNARY},
    **{name: elementwise(name, 2) for name in BINARY},
    **{name: variadic(name) for name in ("Max", "Min")},
    **{name: reductions(name) for name in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")},
    "Cast": casts(),
    "CastLike": likes(),
    "Concat": concats(),
    "CumSum": cumulative_sums(),
    "Expand": expansions(),
    "Gather": gathers(),
    "GatherElements": gathers_of_elements(),
    "GatherND": gathers_of_tuples(),
    "Pow": powers(),
    "Range": ranges(),
    "Reshape": reshapes(),
    "Resize": resizes(),
    "Shape": shapes(),
    "Slice": slices(),
    "Squeeze": squeezes(),
    "Tile": tiles(),
    "Transpose": transpositions(),
    "Trilu": triangles(),
    "Unsqueeze": unsqueezes(),
    "Where": choices(),
}


def folded(name: str, inputs: Sequence[Array | None], attributes: Mapping[str, Any]) -> Array | None:
    """The constant that an operator on constants is folded to; None if the operator is recorded."""
    recorder = Recorder(18)
    with recording(recorder, onnxscript=False), warnings.catch_warnings():
        warnings.simplefilter("error")
        values = [None if each is None else recorder.constant(each) for each in inputs]
        (result,) = recorder.emit(name, values, attributes, outputs=1)
    return None if result.const_value is None else result.const_value.numpy()


def test_every_folded_operator_is_compared() -> None:
    assert OPERATORS.keys() <= EXAMPLES.keys()


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_pytorch_to_the_last_bit(name: str, dtype: torch.dtype) -> None:
    operands = [torch.rand(130, dtype=dtype) * 9 for _ in range(1 + (name == "Pow"))]
    got = folded(name, [each.numpy() for each in operands], {})
    assert got is not None
    assert torch.equal(torch.from_numpy(got), getattr(torch, name.lower())(*operands))


@pytest.mark.parametrize("name", EXAMPLES)
def test_equals_the_reference(name: str) -> None:
    count = 0

    @SETTINGS
    @hypothesis.given(EXAMPLES[name])
    def compare(example: Example) -> None:
        nonlocal count
        got = folded(name, *example)
        if got is None:
            return
        count += 1
        # NOTE: these are folded as PyTorch computes them.
        arrays_are_equal(got, referenced(name, *example), ulps=2 if name in ROUNDED else 0)

    compare()
    assert count, "nothing was folded"


LARGE = {
    "Add": [np.ones((8000, 1)), np.ones((1, 8000))],
    "Concat": [np.ones(5000), np.ones(5000)],
    "Div": [np.ones((8000, 1)), np.ones((1, 8000))],
    "Expand": [np.ones(1), ints([1 << 40])],
    "Gather": [np.ones((1, 8000)), np.zeros(8000, dtype=np.int64)],
    "GatherND": [np.ones((1, 8000)), np.zeros((8000, 1), dtype=np.int64)],
    "Max": [np.ones((8000, 1)), np.ones((1, 8000))],
    "Range": [np.array(0), np.array(1 << 40), np.array(1)],
    "Tile": [np.ones(8000), ints([8000])],
    "Where": [np.ones((8000, 1), dtype=bool), np.ones((1, 8000)), np.ones(())],
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_result_takes_no_memory(name: str) -> None:
    tracemalloc.start()
    try:
        assert folded(name, LARGE[name], {"axis": 0} if name in ("Concat", "Gather") else {}) is None
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_constants_are_used_up_to_the_limit() -> None:
    for size, is_folded in ((LIMIT, True), (LIMIT + 1, False)):
        assert (folded("Neg", [np.ones(size)], {}) is not None) is is_folded
        assert (folded("Expand", [np.ones(1), ints([size])], {}) is not None) is is_folded
        assert (folded("ReduceSum", [np.ones(size), None], {}) is not None) is is_folded
        assert (folded("Range", [np.array(-1), np.array(size - 1), np.array(1)], {}) is not None) is is_folded
        assert (folded("Range", [np.array(1 << 40), np.array((1 << 40) + size), np.array(1)], {}) is not None) is is_folded
        assert (folded("Tile", [np.ones((1, 1)), ints([1, size])], {}) is not None) is is_folded
        assert (folded("Add", [np.ones((size, 1)), np.ones((1, 1))], {}) is not None) is is_folded
    pairs = [np.ones((1, 1, 2)), np.zeros((LIMIT // 2, 2), dtype=np.int64)]
    assert folded("GatherND", pairs, {}) is not None


def test_a_gather_without_indices_is_left_to_onnx() -> None:
    assert folded("GatherND", [np.ones((2, 3)), np.zeros((2, 0), dtype=np.int64)], {}) is None


@pytest.mark.parametrize(("a", "b", "wanted"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-8, 2, -4), (0, 5, 0), (7, 0, None)])
def test_ints_are_divided_toward_zero(a: int, b: int, wanted: int | None) -> None:
    result = folded("Div", [ints([a]), ints([b])], {})
    assert (None if result is None else result.tolist()) == (None if wanted is None else [wanted])


def test_casts_to_whole_bytes_are_folded() -> None:
    """Smaller dtypes, and floats of eight bits, saturate."""
    for dtype in (onnx.TensorProto.BOOL, onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.FLOAT16):
        assert folded("Cast", [np.array([0.0, 2.0])], {"to": dtype}) is not None
    for dtype in (onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT8E4M3FN):
        assert folded("Cast", [np.array([0.0, 2.0])], {"to": dtype}) is None


@pytest.mark.parametrize(("name", "number"), [("Add", 0), ("Mul", 1), ("Sub", 0), ("Div", 1)])
def test_a_number_with_more_dims_than_a_tensor_changes_its_shape(name: str, number: int) -> None:
    for shape, dims, stays in [((2, 3), 2, True), ((2, 3), 0, True), ((), 1, False), ((3,), 2, False), (None, 0, True), (None, 1, False)]:
        recorder = Recorder(18)
        x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=None if shape is None else ir.Shape(shape))
        with recording(recorder, onnxscript=False):
            (result,) = recorder.emit(name, [x, recorder.constant(np.full((1,) * dims, number, dtype=np.float32))], {}, outputs=1)
        assert (result is x) is stays, (shape, dims)
