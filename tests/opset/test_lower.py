"""Graphs of opset 18 in older opsets: which nodes say them, what these compute, and what has no older form."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import logs
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from marks import skip_if_old_runtime

from onnxplain import opset
from onnxplain.diagnostics import Diagnostic, ExportFailed
from onnxplain.request import Request

# Graphs in ONNX's text form, with the operators that say them in some opsets, and the number of inputs of each.
SAID: dict[str, tuple[str, dict[int, str]]] = {
    "axes-of-reductions": (
        """(float[2,3,4] x) => (float[a,b,c] y) <int64[2] axes = {0, -1}> {
            s = ReduceMax(x, axes) t = ReduceMin(s, axes) u = ReduceMean<keepdims=1>(t, axes) v = ReduceProd(u, axes) w = ReduceL1(v, axes)
            l = ReduceL2(w, axes) m = ReduceLogSum(l, axes) n = ReduceLogSumExp(m, axes) y = ReduceSumSquare(n, axes)
        }""",
        dict.fromkeys(
            (11, 17),
            "ReduceMax/1 ReduceMin/1 ReduceMean/1 ReduceProd/1 ReduceL1/1 ReduceL2/1 ReduceLogSum/1 ReduceLogSumExp/1 ReduceSumSquare/1",
        ),
    ),
    "axes": (
        """(float[2,3,4] x) => (float[a,b] y) <int64[1] axes = {1}> {
            s = Unsqueeze(x, axes) t = Squeeze(s, axes) y = ReduceSum<keepdims=0>(t, axes)
        }""",
        {11: "Unsqueeze/1 Squeeze/1 ReduceSum/1", 12: "Unsqueeze/1 Squeeze/1 ReduceSum/1", 13: "Unsqueeze/2 Squeeze/2 ReduceSum/2"},
    ),
    "all-axes": (
        "(float[2,1,4] x) => (float y, float[c,d] z) {y = ReduceMean<noop_with_empty_axes=0, keepdims=0>(x) z = Squeeze(x)}",
        {12: "ReduceMean/1 Squeeze/1"},
    ),
    "no-axes": (
        """(float[2,3] x) => (float[a,b] y, float[a,b] z, float[a,b] w) <int64[0] none = {}, int64[1] axes = {1}> {
            y = ReduceMean<noop_with_empty_axes=1>(x) z = ReduceSum<noop_with_empty_axes=1>(x, none)
            w = ReduceMax<noop_with_empty_axes=1>(x, axes)
        }""",
        {12: "Identity/1 Identity/1 ReduceMax/1", 13: "Identity/1 ReduceSum/2 ReduceMax/1"},
    ),
    "softmax": (
        "(float[2,3,4] x) => (float[a,b,c] y) {s = Softmax(x) t = LogSoftmax<axis=-1>(s) u = Softmax<axis=-1>(t) y = Identity(u)}",
        dict.fromkeys((11, 12, 13), "Softmax/1 LogSoftmax/1 Softmax/1 Identity/1"),
    ),
    "softmax-along-the-last": ("(float[2,3,4] x) => (float[a,b,c] y) {y = Softmax<axis=2>(x)}", {12: "Softmax/1", 13: "Softmax/1"}),
    "softmax-along-another": (
        "(float[2,3,4] x) => (float[a,b,c] y) {y = LogSoftmax<axis=-3>(x)}",
        {12: "Transpose/1 LogSoftmax/1 Transpose/1", 13: "LogSoftmax/1"},
    ),
    "hardmax": (
        "(float[2,3,4] x) => (float[a,b,c] y) {y = Hardmax<axis=1>(x)}",
        {12: "Transpose/1 Hardmax/1 Transpose/1", 13: "Hardmax/1"},
    ),
    "extremes": (
        "(int64[2,3] x, int64[3] y, float[3] z) => (int64[a,b] u, int64[a,b] v, float[c] w) {u = Max(x, y) v = Min(x, y) w = Max(z, z, z)}",
        {11: "Greater/2 Where/3 Less/2 Where/3 Max/3", 12: "Max/2 Min/2 Max/3"},
    ),
    "comparisons": (
        "(float[2,3] x, float[3] y) => (bool[a,b] u, bool[a,b] v) {u = GreaterOrEqual(x, y) v = LessOrEqual(x, y)}",
        {11: "Greater/2 Equal/2 Or/2 Less/2 Equal/2 Or/2", 12: "GreaterOrEqual/2 LessOrEqual/2"},
    ),
    "parts": (
        "(float[2,7] x) => (float[a,b] y, float[a,c] z, float[a,d] w) {y, z, w = Split<axis=1, num_outputs=3>(x)}",
        {12: "Split/1", 13: "Constant/0 Split/2", 17: "Constant/0 Split/2"},
    ),
    "two-parts-of-the-first-axis": (
        "(float[5,2] x) => (float[a,b] y, float[c,b] z) {y, z = Split<num_outputs=2>(x)}",
        {12: "Split/1", 13: "Constant/0 Split/2"},
    ),
    "parts-of-given-sizes": (
        "(float[2,7] x) => (float[a,b] y, float[a,c] z) <int64[2] sizes = {3, 4}> {y, z = Split<axis=-1>(x, sizes)}",
        {12: "Split/1", 13: "Split/2"},
    ),
    "parts-of-computed-sizes": (
        "(float[2,3] x, int64[2] sizes) => (float[a,b] y, float[a,c] z) {y, z = Split<axis=0>(x, sizes)}",
        {13: "Split/2"},
    ),
    "parts-of-a-size": (
        "(float[n,2] x) => (float[a,b] y, float[a,b] z, float[c,b] w) {y, z, w = Split<num_outputs=3>(x)}",
        {13: "Shape/1 Constant/0 Gather/2 Constant/0 Constant/0 Add/2 Div/2 Mul/2 Sub/2 Concat/3 Split/2"},
    ),
    "pads": (
        """(float[2,3] x) => (float[a,b] y, float[c,d] z) <int64[4] pads = {0, 1, 1, 2}, float two = {2}> {
            y = Pad(x, pads, two) z = Pad<mode="edge">(x, pads)
        }""",
        dict.fromkeys((11, 17), "Pad/3 Pad/2"),
    ),
    "pads-of-axes": (
        """(float[2,3,4] x) => (float[a,b,c] y, float[d,e,f] z) <int64[4] pads = {0, 1, 1, 2}, int64[2] axes = {-1, 1}, float two = {2}> {
            y = Pad(x, pads, two, axes) z = Pad<mode="reflect">(x, pads, , axes)
        }""",
        dict.fromkeys((11, 17), "Constant/0 Pad/3 Constant/0 Pad/3"),
    ),
    "layer-norm": (
        """(float[2,3,4] x, float[4] w, float[4] b) => (float[a,b,c] y, float[a,b,c] z) {
            y, mean, deviation = LayerNormalization(x, w, b) z = LayerNormalization<axis=1, epsilon=0.5>(x, w)
        }""",
        {
            16: "ReduceMean/1 Sub/2 Mul/2 ReduceMean/1 Constant/0 Add/2 Sqrt/1 Div/2 Mul/2 Add/2 "
            "ReduceMean/1 Sub/2 Mul/2 ReduceMean/1 Constant/0 Add/2 Sqrt/1 Div/2 Mul/2",
            17: "LayerNormalization/3 LayerNormalization/2",
        },
    ),
    "layer-norm-of-doubles": (
        "(double[2,3] x, double[3] w) => (double[a,b] y) {y = LayerNormalization<axis=-1>(x, w)}",
        {16: "ReduceMean/1 Sub/2 Mul/2 ReduceMean/1 Constant/0 Add/2 Sqrt/1 Div/2 Mul/2"},
    ),
    "layer-norm-of-halves": (
        "(float16[2,3] x, float16[3] w) => (float16[a,b] y) {y = LayerNormalization(x, w)}",
        {16: "Cast/1 ReduceMean/1 Sub/2 Mul/2 ReduceMean/1 Constant/0 Add/2 Sqrt/1 Div/2 Cast/1 Mul/2"},
    ),
    "cast-like": ("(float[2] x, int64[1] i) => (int64[a] y) {y = CastLike(x, i)}", {14: "Cast/1", 15: "CastLike/2"}),
    "triangles": (
        """(float[2,3,4] x, int64[3,4] i) => (float[a,b,c] y, int64[b,c] z, float[a,b,c] w) <int64 one = {1}> {
            y = Trilu(x) z = Trilu<upper=0>(i) w = Trilu<upper=1>(x, one)
        }""",
        {
            13: " ".join(
                "Constant/0 Constant/0 Shape/1 Constant/0 Constant/0 Gather/2 Range/3 Reshape/2 "
                f"Constant/0 Constant/0 Gather/2 Range/3 Reshape/2 Sub/2 {comparison}/2 Constant/0 Where/3"
                for comparison in ("Less", "Greater", "Less")
            ),
            14: "Trilu/1 Trilu/1 Trilu/2",
        },
    ),
    "activations": (
        "(float[9] x) => (float[a] y) {s = HardSwish(x) y = Mish(s)}",
        {
            11: "HardSigmoid/1 Mul/2 Softplus/1 Tanh/1 Mul/2",
            13: "HardSigmoid/1 Mul/2 Softplus/1 Tanh/1 Mul/2",
            14: "HardSwish/1 Softplus/1 Tanh/1 Mul/2",
            17: "HardSwish/1 Softplus/1 Tanh/1 Mul/2",
        },
    ),
    "clip-of-integers": (
        """(int64[9] x) => (int64[a] y, int64[a] z, int64[a] w, int64[a] n) <int64 low = {2}, int64 high = {-1}> {
            y = Clip(x, low, high) z = Clip(x, low) w = Clip(x, , high) n = Clip(x)
        }""",
        {11: "Less/2 Where/3 Greater/2 Where/3 Less/2 Where/3 Greater/2 Where/3 Identity/1", 12: "Clip/3 Clip/2 Clip/3 Clip/1"},
    ),
    "clip": ("(float[9] x) => (float[a] y) <float low = {-1}> {y = Clip(x, low)}", {11: "Clip/2", 12: "Clip/2"}),
    "shapes": (
        """(float[2,3,4] x) => (int64[a] y, int64[b] z, int64[c] w, int64[d] v) {
            y = Shape(x) z = Shape<start=1>(x) w = Shape<end=-1>(x) v = Shape<start=0>(x)
        }""",
        {
            14: "Shape/1 Shape/1 Constant/0 Constant/0 Slice/3 Shape/1 Constant/0 Constant/0 Slice/3 Shape/1",
            15: "Shape/1 Shape/1 Shape/1 Shape/1",
        },
    ),
    "a-size": ("(float[2,3,4] x) => (int64[a] y) {y = Shape<start=1, end=2>(x)}", {14: "Shape/1 Constant/0 Constant/0 Slice/3"}),
    "reshapes": (
        """(float[2,3] x, int64[1] to) => (float[a] y, float[b] z, float[c,d] w) <int64[1] six = {6}, int64[2] same = {0, -1}> {
            y = Reshape(x, to) z = Reshape<allowzero=1>(x, six) w = Reshape<allowzero=0>(x, same)
        }""",
        dict.fromkeys((13, 14), "Reshape/2 Reshape/2 Reshape/2"),
    ),
    "batch-norm": (
        "(float[2,3] x, float[3] w) => (float[a,b] y) {y = BatchNormalization<training_mode=0, epsilon=0.5>(x, w, w, w, w)}",
        dict.fromkeys((11, 13, 14), "BatchNormalization/5"),
    ),
    "powers": (
        """(float[9] x, int64[9] i) => (float[a] y, float[a] z, int64[a] w) <float two = {2}, int64 three = {3}> {
            y = Pow(x, two) z = Pow(x, three) w = Pow(i, three)
        }""",
        {11: "Pow/2 Cast/1 Pow/2 Cast/1 Cast/1 Pow/2 Cast/1", 12: "Pow/2 Pow/2 Pow/2"},
    ),
    "resized-by-a-factor": (
        "(float[1,1,3,3] x) => (float[a,b,c,d] y) <float[4] scales = {1, 1, 2, 2}> {y = Resize(x, , scales)}",
        {12: "Constant/0 Resize/3", 13: "Resize/3"},
    ),
    "resized": (
        """(float[1,1,3,3] x) => (float[a,b,c,d] y) <int64[4] sizes = {1, 1, 5, 7}> {
            y = Resize<mode="linear", antialias=0, keep_aspect_ratio_policy="stretch">(x, , , sizes)
        }""",
        {12: "Constant/0 Constant/0 Resize/4", 13: "Resize/4", 17: "Resize/4"},
    ),
    "default-attributes": (
        """(float[4] x, int64[2] i, float[2] u) => (float[4] y) {y = ScatterElements<reduction="none", axis=0>(x, i, u)}""",
        dict.fromkeys((11, 15, 16), "ScatterElements/3"),
    ),
    "another-domain": (
        "(float[2,3] x) => (float[a] y) <int64[1] axes = {1}> {s = com.microsoft.Gelu(x) y = ReduceSum<keepdims=0>(s, axes)}",
        {12: "Gelu/1 ReduceSum/1"},
    ),
    "branch": (
        """(bool c, float[2,3] x) => (float[a,b] y) <int64[1] axes = {1}> {
            y = If(c) <
                then_branch = one () => (float[a,b] u) {u = ReduceSum(x, axes)},
                else_branch = other () => (float[a,b] v) {v = HardSwish(x)}
            >
        }""",
        {12: "If/1 ReduceSum/1 HardSigmoid/1 Mul/2", 13: "If/1 ReduceSum/2 HardSigmoid/1 Mul/2"},
    ),
}
DTYPES = {"FLOAT": np.float32, "DOUBLE": np.float64, "FLOAT16": np.float16, "INT64": np.int64, "BOOL": np.bool_}


def parsed(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> main {graph}')


def request(asked: int, **given: Any) -> Request:
    return Request(**{field.name: None for field in dataclasses.fields(Request)} | {"opset_version": asked, "callers": ()} | given)


def lowered(model: ir.Model, asked: int) -> tuple[Diagnostic, ...]:
    """The findings; none if the model is one of opset `asked` now."""
    context = logs.context()
    try:
        with context.stage("serialize"):
            opset.lower(context, model, request(asked))
    except ExportFailed as failed:
        return failed.findings
    return ()


def results(model: onnx.ModelProto) -> Sequence[Any]:
    random = np.random.default_rng(5)
    feeds = {}
    for given in model.graph.input:
        tensor = given.type.tensor_type
        shape = [each.dim_value or 5 for each in tensor.shape.dim]
        name = onnx.TensorProto.DataType.Name(tensor.elem_type)
        feeds[given.name] = np.asarray(random.integers(0, 2, shape) if name == "BOOL" else 3 * random.standard_normal(shape)).astype(
            DTYPES[name]
        )
    # NOTE: these are sizes and places.
    feeds |= {name: np.array([1, 1]) for name in feeds if name == "sizes"} | {name: np.array([6]) for name in feeds if name == "to"}
    feeds |= {name: np.array([3, 0]) for name in feeds if name == "i" and feeds[name].shape == (2,)}
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)


@pytest.mark.parametrize(("name", "asked"), [(name, asked) for name, (_, each) in SAID.items() for asked in each])
def test_what_an_opset_can_say(name: str, asked: int) -> None:
    skip_if_old_runtime(name, "no-axes", "layer-norm")
    graph, said = SAID[name]
    before = parsed(graph)
    model = ir.from_proto(before)
    for number, node in enumerate(model.graph.all_nodes()):
        node.name, node.metadata_props["from"], node.meta["from"] = f"n{number}", f"n{number}", number
        for output in node.outputs:
            output.metadata_props["from"], output.meta["from"] = f"n{number}", number
    assert not lowered(model, asked)
    nodes = list(model.graph.all_nodes())
    assert " ".join(f"{node.op_type}/{len(node.inputs)}" for node in nodes) == said[asked]
    assert len({node.name for node in nodes}) == len(nodes)
    assert all(node.name.split("/")[0] == node.metadata_props["from"] == f"n{node.meta['from']}" for node in nodes)
    last = {node.metadata_props["from"]: node.outputs[0] for node in nodes}
    assert all(value.metadata_props["from"] == f"n{value.meta['from']}" == origin for origin, value in last.items())
    assert all(each.uses() for each in model.graph.initializers.values())
    after = ir.to_proto(model)
    onnx.checker.check_model(after, full_check="com.microsoft" not in graph[: graph.index("{")])
    assert {each.domain: each.version for each in after.opset_import} == {"": asked, "com.microsoft": 1}
    for expected, result in zip(results(before), results(after), strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-3 if result.dtype == np.float16 else 1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "asked", "needed"),
    [
        ("(float[2,3] x, int64[1] axes) => (float[a,b] y) {y = ReduceSum(x, axes)}", 12, 13),
        ("(float[2,3] x, int64[1] axes) => (float[a,b] y) {y = ReduceMean(x, axes)}", 11, 18),
        ("(uint8[2,3] x) => (uint8[a,b] y) {y = ReduceMax(x)}", 11, 12),
        ("(float[2,3] x) => (float[a,b] y) {s = Relu(x) y = Softmax<axis=0>(s)}", 12, 13),
        ("(int64[3] x) => (int64[a] y) {y = Max(x, x, x)}", 11, 12),
        ("(int64[3] x) => (int64[a] y) {s = Add(x, x) y = Max(s, x)}", 11, 12),
        ("(uint8[3] x) => (uint8[a] y) {s = Identity(x) y = Add(s, x)}", 13, 14),
        ("(int64[3] x) => (int64[a] y) {y = Min(x)}", 11, 12),
        ("(float[3] x) => (float[a] y) <float ratio = {0.5}> {y = Dropout(x, ratio)}", 11, 12),
        ("(float[2,3] x, int64[2] sizes) => (float[a,b] y, float[c,b] z) {y, z = Split(x, sizes)}", 12, 13),
        ("(float[n,3] x) => (float[a,b] y, float[c,b] z) {y, z = Split<num_outputs=2>(x)}", 11, 13),
        ("(float[n,3] x) => (float[a,b] y, float[c,b] z) {s = Relu(x) y, z = Split<num_outputs=2>(s)}", 12, 13),
        ("(float[2] x, int64[2] pads) => (float[a] y) <float v = {1}, int64[1] axes = {0}> {y = Pad(x, pads, v, axes)}", 17, 18),
        ("(float[2] x, int64[1] axes) => (float[a] y) <float v = {1}, int64[2] pads = {1, 1}> {y = Pad(x, pads, v, axes)}", 17, 18),
        (
            "(float[2] x) => (float[a] y) <float v = {1}, int64[1] i = {0}, int64[2] p = {1, 1}> {s = Relu(x) y = Pad(s, p, v, i)}",
            17,
            18,
        ),
        ("(float[2,3] x, float[3] w) => (float[a,b] y, float[c,d] m) {y, m = LayerNormalization(x, w)}", 16, 17),
        ("(float[2,3] x, float[3] w) => (float[a,b] y) {s = Relu(x) y = LayerNormalization(s, w)}", 16, 17),
        ("(float[2] x, int64[2] i) => (int64[a] y) {s = Add(i, i) y = CastLike(x, s)}", 14, 15),
        ("(float[2,3] x) => (float[a,b] y) {s = Relu(x) y = Trilu(s)}", 13, 14),
        ("(float[2,3] x, int64[2] to) => (float[a,b] y) {y = Reshape<allowzero=1>(x, to)}", 13, 14),
        ("(float[0,3] x) => (float[a,b] y) <int64[2] to = {3, 0}> {y = Reshape<allowzero=1>(x, to)}", 13, 14),
        ("(float[2,3] x, float[3] w) => (float[a,b] y) {y, m, v = BatchNormalization<training_mode=1>(x, w, w, w, w)}", 11, 14),
        ("(float[3] x, int64[3] i) => (float[a] y) {s = Relu(x) y = Pow(s, i)}", 11, 12),
        ("(float[3] x, int64[3] i) => (float[a] y) {s = Add(i, i) y = Pow(x, s)}", 11, 12),
        ("(float[1,3] x) => (float[a,b] y) <int64[2] to = {1, 2}> {y = Resize<antialias=1>(x, , , to)}", 17, 18),
        ("(float[1,3] x) => (float[a,b] y) <int64[1] to = {2}> {y = Resize<axes=[1]>(x, , , to)}", 12, 18),
        ('(float[1,3] x) => (float[a,b] y) <int64[2] to = {1, 2}> {y = Resize<keep_aspect_ratio_policy="not_larger">(x, , , to)}', 13, 18),
        ('(float[4] x, int64[2] i, float[2] u) => (float[4] y) {y = ScatterElements<reduction="add">(x, i, u)}', 11, 16),
        ("(int64[4] x) => (int64[4] y) {y = BitwiseNot(x)}", 17, 18),
        ("(int64[4] x) => (int64[4] y) {y = Relu(x)}", 11, 14),
    ],
)  # fmt: skip
def test_what_needs_a_newer_opset(graph: str, asked: int, needed: int) -> None:
    findings = lowered(ir.from_proto(parsed(graph)), asked)
    operator = re.findall(r"(\w+)[<(]", graph[graph.rindex("= ") :])[0]
    assert [tuple(each.rule.argument_texts()) for each in findings] == [(f"onnx::{operator}", str(needed), str(asked))]
    assert [fix.snippet for each in findings for fix in each.fixes] == [f"opset_version={needed}"]
    # The opset that it names can say the graph.
    assert not lowered(ir.from_proto(parsed(graph)), needed)


@pytest.mark.parametrize("asked", [18, 20])
def test_a_newer_opset_stays(asked: int) -> None:
    model = ir.from_proto(parsed("(float[4] x) => (float[4] y) <int64[1] unused = {1}> {z = Relu(x) y = HardSwish(z)}"))
    model.ir_version = 10
    before = ir.to_proto(model)
    assert not lowered(model, asked)
    assert ir.to_proto(model) == before


@pytest.mark.parametrize("asked", [1, 10])
def test_opsets_that_are_too_old(asked: int) -> None:
    findings = lowered(ir.from_proto(parsed("(float[4] x) => (float[4] y) {z = Relu(x) y = Add(z, z)}")), asked)
    assert [tuple(each.rule.argument_texts()) for each in findings] == [("onnx::Relu", "11", str(asked))]


def test_weights_that_stay() -> None:
    text = "(float x, float w) => (float y, float v) <float w = {1}, float v = {2}, float u = {3}> {y = Relu(x)}"
    model = ir.from_proto(parsed(text))
    assert not lowered(model, 17)
    # One is an input that has a default, the other an output.
    assert [*model.graph.initializers] == ["w", "v"]
