"""Which tensors count as collapsed, in graphs whose tensors between broadcast and reduction have no shapes."""

from __future__ import annotations

import logs
import onnx
import onnx_ir as ir
import pytest

from onnxplain.memory import review
from onnxplain.rules import BroadcastCollapsed


def found(inputs: str, body: str) -> list[str]:
    """The shapes that a review of a graph tells, whose dynamic dims are 256."""
    header = '<ir_version: 9, opset_import: ["" : 20]>'
    known = "<float[256, 256, 256] taken, int64[1] last = {-1}, int64[2] two = {0, 2}, int64[3] spread = {256, 1, 1}>"
    text = f"{header} g ({inputs}) => (float[k] out) {known} {{ {body} }}"
    model = ir.from_proto(onnx.parser.parse_model(text))
    context = logs.context()
    shapes = [[dim if isinstance(dim, int) else 256 for dim in value.shape or ()] for value in model.graph.inputs]
    review(context, model, shapes, rewrite=False)
    rules = [finding.rule for finding in context.log().findings]
    return [rule.shape for rule in rules if isinstance(rule, BroadcastCollapsed)]


SUM = "big = Sub (x, y) positive = Abs (big) out = ReduceSum <keepdims = 0> (positive, {axes})"


@pytest.mark.parametrize(
    ("inputs", "axes", "expected"),
    [
        ("float[256, 1, 256] x, float[256, 256] y", "last", "[256, 256, 256]"),
        ("float[256, 256] x, float[256, 1, 256] y", "last", "[256, 256, 256]"),
        ("float[256, 1, 256] x, float[1, 256, 1] y", "last", "[256, 256, 256]"),
        ("float[n, 1, d] x, float[m, d] y", "last", "[256, 256, 256]"),
        ("float[1, n, 1] x, float[m, 1, d] y", "two", "[256, 256, 256]"),
        ("float[256, 1, 1] x, float[1, 256, 256] y", "two", "[256, 256, 256]"),
    ],
)
def test_shapes_follow_by_broadcasting(inputs: str, axes: str, expected: str) -> None:
    assert found(inputs, SUM.format(axes=axes)) == [expected]


@pytest.mark.parametrize(
    ("inputs", "repeated"),
    [
        ("float[256, 256] x, float[256, 1, 256] y", "wide = Expand (x, spread)"),
        ("float[1, 256, 256] x, float[256, 1, 256] y, int64[256] places", "taken = Gather (x, places) wide = Neg (taken)"),
    ],
)
def test_what_repeats_its_input_counts(inputs: str, repeated: str) -> None:
    assert found(inputs, f"{repeated} big = Sub (wide, y) positive = Abs (big) out = ReduceSum <keepdims = 0> (positive, last)") == [
        "[256, 256, 256]"
    ]


@pytest.mark.parametrize(
    "inputs",
    [
        "float[n, 1, d] x, float[m, e] y",  # d and e need not be equal
        "float[256, 1, d] x, float[256, 256] y",
        "float[256, 1, 255] x, float[256, 255] y",  # below 64 MiB by one column
        "float[256, 1, 256] x, float[256, 256, 256] y",  # an input as large
        "float[4096, 1, 4] x, float[4096, 4] y",  # a result a quarter as large
    ],
)
def test_what_is_not_known_to_be_large_is_left_alone(inputs: str) -> None:
    assert found(inputs, SUM.format(axes="last")) == []


def test_a_tensor_must_be_eight_times_as_large_as_its_parts() -> None:
    # NOTE: at 8 it counts, at 7 not. The result has 1 / 4096 of the elements.
    for times, expected in ((8, ["[8, 1024, 4096]"]), (7, [])):
        text = f"float[1, 1024, 4096] x, float[{times}, 1, 1] y"
        assert found(text, SUM.format(axes="last")) == expected


def two_readers(other: str) -> list[str]:
    body = f"big = Sub (x, y) positive = Abs (big) sum = ReduceSum <keepdims = 0> (positive, last) {other} out = Add (sum, top)"
    return found("float[256, 1, 256] x, float[256, 256] y", body)


def test_a_result_that_several_reductions_read_counts() -> None:
    assert two_readers("top = ReduceMax <keepdims = 0> (positive, last)") == ["[256, 256, 256]"]


def test_a_result_that_something_else_reads_is_no_part() -> None:
    assert two_readers("soft = Softmax (positive) top = ReduceMax <keepdims = 0> (soft, last)") == []


@pytest.mark.parametrize(("length", "chunks"), [(300, [50, 6]), (297, [38, 8]), (304, [38, 8])])
def test_chunks_have_equal_lengths_if_these_are_half_of_what_fits(length: int, chunks: list[int]) -> None:
    """Eight rows of 256 KiB fit. Of 297 rows, chunks of equal length have three at most, so that the last of 38 is padded instead."""
    body = SUM.format(axes="last")
    text = f'<ir_version: 9, opset_import: ["" : 20]> g (float[{length}, 1, 256] x, float[256, 256] y) => (float[{length}, 256] out)'
    model = ir.from_proto(onnx.parser.parse_model(f"{text} <int64[1] last = {{-1}}> {{ {body} }}"))
    review(logs.context(), model, [(length, 1, 256), (256, 256)], rewrite=True)
    (scan,) = (node for node in model.graph if node.op_type == "Scan")
    assert list(scan.outputs[0].shape or ()) == [*chunks, 256]
    made = [value.name or "" for node in model.graph for value in node.outputs]
    assert [name for name in made if not name.startswith("out")] == []
