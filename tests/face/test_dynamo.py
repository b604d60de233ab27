"""The interface of torch.onnx from 2.1 to 2.8 and today's program: options, registry, strategies, calls, and refused arguments."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import onnxruntime
import pytest
import torch
from onnxscript import opset18 as op

import onnxplain
from onnxplain import DiagnosticOptions, ExportFailed, ExportOptions, InvalidArgument, Level, OnnxRegistry, ONNXRuntimeOptions, diagnostics

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def dims(program: onnxplain.ONNXProgram) -> list[list[str | int]]:
    """The dims of all inputs, names in letters by their first use."""
    letters: dict[str, str] = {}
    return [
        [dim if isinstance(dim, int) else letters.setdefault(str(dim), "abcdefgh"[len(letters)]) for dim in value.shape or ()]
        for value in program.model.graph.inputs
    ]


def found(program: onnxplain.ONNXProgram) -> list[tuple[str, int | None]]:
    return [(each.rule.id, each.location.line if each.location else None) for each in program.diagnostics.findings]


# All dims dynamic

MODELS = """
    import math

    import torch

    class Classifier(torch.nn.Module):
        def __init__(self, flat=False):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)
            self.fc = torch.nn.Linear(4, 2)

        def forward(self, x):
            x = torch.relu(self.conv(x))  # conv
            return self.fc(x.mean((2, 3)))

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)
            self.fc = torch.nn.Linear(4 * 6 * 6, 2)

        def forward(self, x):
            x = self.conv(x)  # channels
            return self.fc(x.flatten(1))  # flat

    def twice(x):
        return x * 2

    def add(x, y):
        return x + y  # add

    def nested(batch, *, scale=None):
        left, (right,) = batch["pair"]
        if scale is None:
            return left + right
        return left * scale + right

    def loop(x):
        total = torch.zeros(())
        for row in range(x.shape[0]):  # loop
            total = total + x[row].sum()
        return total

    def view(x):
        return x.view(3, 4).sum(0)  # view

    def pairs(x):
        return x.view(-1, 2)

    def branch(x):
        if x.shape[0] > 2:  # branch
            return x * 2
        return x

    def squeeze(x):
        return x.squeeze(1) * 2  # squeeze

    def squeeze_all(x):
        return torch.nn.functional.adaptive_avg_pool2d(x, 1).squeeze()  # squeeze all

    def squeeze_every(x):
        return x.squeeze()  # squeeze every

    def squeeze_pooled(x):
        return torch.nn.functional.max_pool1d(x, 2).squeeze_(2)  # squeeze pooled

    TABLE = torch.arange(12.0).reshape(1, 4, 3)

    def positions(x):
        return x + TABLE  # positions

    def halves(x):
        left, right = torch.ops.aten.tensor_split(x, 2, 1)  # halves
        return left * 2

    def quarters(x):
        return torch.ops.aten.tensor_split(x, 4)[1] * 2  # quarters

    def even(x):
        if x.shape[1] % 2 == 0:
            return x * 2
        return x

    def equal_halves(x):
        return torch.hsplit(x, 2)[0] * 2  # equal halves

    def every_second(x):
        return x[::2] * 2

    def every_third(x):
        return x[:, 1::3] * 2

    def parts(x):
        return sum(part.sum(1) for part in x.split(2, 1))  # parts

    def long_parts(x):
        return torch.cat(x.split(500, 1)[::-1], 1)  # long parts

    def last_part(x):
        return x.split(4, 1)[-1]  # last part

    def second_half(x):
        return x.chunk(2, 1)[-1] * 2  # second half

    def in_place(x):
        y = torch.arange(min(x.shape[0], 4)) * 2
        y.squeeze_()  # in place
        return y

    def first_part(x):
        return x.split(2, 1)[0]

    def gate(x):
        value, gate = x.chunk(2, 1)
        return value * gate.sigmoid()  # gate

    def single(x):
        if x.shape[0] == 1:  # single
            return x
        return -x

    def last_of_three(x):
        return x.chunk(3, 0)[-1]  # last of three

    def ninth(x):
        return x.chunk(3, -1)[-1].chunk(3, -1)[-1]  # ninth

    def half(x):
        return torch.ops.aten.tensor_split(x, 2, 0)[-1]  # half

    def one_chunk(x):
        return x.chunk(1, 1)[0] * 2

    def short(x, y):
        x = x + torch.arange(2)[: x.shape[0]]  # short
        return x, y * 2

    def scaled(x):
        return x * math.log(x.shape[0] // 2)  # scaled

    def counted(x):
        return x * int(len(x) > 2)  # counted

    def unbound(x):
        return x * len(x[:, ::2].unbind(1))  # unbound

    def number_of_parts(x):
        return x * len(x.split(x.shape[1], 2))  # number of parts

    def rests(x):
        return x[: x.shape[0] // 3] + x.split(x.shape[0] // 3)[-1]  # rests

    def padded(x, y):
        wide = torch.nn.functional.pad(x, (0, 8 - x.shape[-1]))
        return wide, y + int(y.shape[0] > 2)  # padded

    def norm(x):
        return torch.nn.functional.group_norm(x.unflatten(1, (2, -1)).flatten(1), 2)

    def equal(x, y):
        if x.shape[1] == y.shape[0]:  # equal
            return x @ y
        return x
"""

R = torch.randn
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], list[Any], list[tuple[str, str]], list[tuple[Any, dict[str, Any]]]]] = {
    "size 1": ("twice", (R(1, 4),), {}, [["a", "b"]], [], [((R(3, 5),), {}), ((R(1, 1),), {})]),
    "size 0": ("twice", (R(0, 4),), {}, [["a", "b"]], [], [((R(3, 5),), {}), ((R(0, 0),), {})]),
    "scalar": ("add", (R(2, 4), R(())), {}, [["a", "b"], []], [], [((R(3, 5), R(())), {})]),
    "equal dims": ("add", (R(2, 4), R(2, 4)), {}, [["a", "b"], ["a", "b"]], [], [((R(3, 5), R(3, 5)), {})]),
    "broadcast": ("add", (R(1, 4), R(3, 4)), {}, [[1, "a"], ["b", "a"]], [("OXP1034", "add")], [((R(1, 5), R(7, 5)), {})]),
    "nested": (
        "nested",
        ({"pair": (R(2, 3), [R(2, 3)])},),
        {"scale": R(3)},
        [["a", "b"], ["a", "b"], ["b"]],
        [],
        [(({"pair": (R(5, 4), [R(5, 4)])},), {"scale": R(4)})],
    ),
    "convolution": ("Classifier", (R(2, 3, 8, 8),), {}, [["a", 3, "b", "c"]], [("OXP1034", "conv")], [((R(5, 3, 9, 12),), {})]),
    "batch of 1": ("Classifier", (R(1, 3, 8, 8),), {}, [["a", 3, "b", "c"]], [("OXP1034", "conv")], [((R(5, 3, 9, 12),), {})]),
    "flattened": ("Flat", (R(2, 3, 8, 8),), {}, [["a", 3, 8, 8]], [("OXP1034", "channels"), ("OXP1034", "flat")], [((R(5, 3, 8, 8),), {})]),
    "loop": ("loop", (R(3, 4),), {}, [[3, "a"]], [("OXP1034", "loop")], [((R(3, 7),), {})]),
    "number of elements": ("view", (R(2, 6),), {}, [[2, 6]], [("OXP1034", "view")], []),
    "even number of elements": ("pairs", (R(2, 6),), {}, [["a", "b"]], [], [((R(3, 4),), {})]),
    "branch": ("branch", (R(3, 4),), {}, [["a", "b"]], [("OXP1011", "branch")], [((R(5, 2),), {})]),
    "squeezed": ("squeeze", (R(2, 1, 3),), {}, [["a", 1, "b"]], [("OXP1034", "squeeze")], [((R(5, 1, 4),), {})]),
    "squeezed, two dims of 1": ("squeeze", (R(1, 1, 3),), {}, [["a", 1, "b"]], [("OXP1034", "squeeze")], [((R(5, 1, 4),), {})]),
    "nothing to squeeze": ("squeeze", (R(2, 4, 1),), {}, [["a", "b", "c"]], [("OXP1011", "squeeze")], [((R(5, 7, 4),), {})]),
    "all squeezed": (
        "squeeze_all",
        (R(1, 3, 4, 4),),
        {},
        [[1, "a", "b", "c"]],
        [("OXP1011", "squeeze all"), ("OXP1034", "squeeze all")],
        [((R(1, 5, 6, 7),), {})],
    ),
    "pooled to 1": ("squeeze_pooled", (R(2, 3, 2),), {}, [["a", "b", 2]], [("OXP1034", "squeeze pooled")], [((R(5, 4, 2),), {})]),
    "broadcast to a constant": ("positions", (R(2, 1, 3),), {}, [["a", 1, 3]], [("OXP1034", "positions")], [((R(5, 1, 3),), {})]),
    "remainder": ("halves", (R(2, 6),), {}, [["a", "b"]], [("OXP1011", "halves")], [((R(3, 8),), {})]),
    "remainders": ("quarters", (R(6, 3),), {}, [["a", "b"]], [("OXP1011", "quarters")], [((R(10, 4),), {})]),
    "refused remainder": ("equal_halves", (R(2, 6),), {}, [["a", "b"]], [], [((R(3, 8),), {})]),
    "refused remainders": ("norm", (R(2, 6),), {}, [["a", "b"]], [], [((R(3, 8),), {})]),
    "step of 2": ("every_second", (R(2, 3),), {}, [["a", "b"]], [], [((R(7, 4),), {}), ((R(1, 4),), {})]),
    "step of 3": ("every_third", (R(3, 2),), {}, [["a", "b"]], [], [((R(7, 4),), {}), ((R(7, 8),), {})]),
    "parts": ("parts", (R(2, 6),), {}, [["a", 6]], [("OXP1034", "parts")], [((R(3, 6),), {})]),
    "first part": ("first_part", (R(2, 6),), {}, [["a", "b"]], [], [((R(3, 9),), {})]),
    "gate": ("gate", (R(2, 6),), {}, [["a", "b"]], [], [((R(3, 10),), {})]),
    "squeezed later": ("squeeze", (R(2, 6, 3),), {}, [["a", "b", "c"]], [("OXP1011", "squeeze")], [((R(3, 7, 4),), {})]),
    "branch of two": ("equal", (R(2, 3), R(3, 4)), {}, [["a", "b"], ["b", "c"]], [("OXP1011", "equal")], [((R(5, 2), R(2, 7)), {})]),
}


@pytest.mark.parametrize(("name", "args", "kwargs", "shapes", "expected", "others"), CASES.values(), ids=CASES)
def test_every_dim_is_dynamic_that_the_model_leaves_open(
    load: Load,
    marked: Marked,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shapes: list[Any],
    expected: list[tuple[str, str]],
    others: list[tuple[Any, dict[str, Any]]],
) -> None:
    model = getattr(load(MODELS), name)
    model = model().eval() if isinstance(model, type) else model
    program = onnxplain.dynamo_export(model, *args, export_options=ExportOptions(dynamic_shapes=True), **kwargs)
    assert dims(program) == shapes
    assert sorted(found(program)) == sorted((rule, marked(place)[0]) for rule, place in expected)
    for more_args, more_kwargs in [(args, kwargs), *others]:
        torch.testing.assert_close(program(*more_args, **more_kwargs)[0], model(*more_args, **more_kwargs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strategy", ["non-strict", "strict"])
def test_every_dim_by_each_strategy(load: Load, marked: Marked, strategy: str) -> None:
    options = ExportOptions(dynamic_shapes=True, strategies=(strategy,))
    program = onnxplain.dynamo_export(load(MODELS).Flat().eval(), torch.randn(2, 3, 8, 8), export_options=options)
    assert dims(program) == [["a", 3, 8, 8]]
    assert {rule for rule, _ in found(program)} == {"OXP1034"}
    assert {line for _, line in found(program)} <= {*marked("channels"), *marked("flat")}


NAMED: dict[str, tuple[str, torch.Tensor, dict[int, Any], list[tuple[str, str]], list[torch.Tensor]]] = {
    "squeezed later": ("squeeze", R(2, 6, 3), {1: "n"}, [("OXP1011", "squeeze")], [R(2, 6, 3), R(2, 7, 3)]),
    "squeezed later, of a Dim": ("squeeze", R(2, 6, 3), {1: torch.export.Dim("n", min=1)}, [("OXP1011", "squeeze")], [R(2, 7, 3)]),
    "never squeezed": ("squeeze", R(2, 6, 3), {1: torch.export.Dim("n", min=2)}, [], [R(2, 7, 3)]),
    "squeezed as it was allowed": ("squeeze", R(2, 1, 3), {1: torch.export.Dim.AUTO}, [("OXP1034", "squeeze")], [R(2, 1, 3)]),
    "parts": ("parts", R(2, 6), {1: "n"}, [("OXP1037", "parts")], [R(2, 6), R(2, 5), R(2, 1), R(2, 9)]),
    "parts of a Dim": ("parts", R(2, 6), {1: torch.export.Dim("n", max=9)}, [("OXP1037", "parts")], [R(2, 5), R(2, 1), R(2, 9)]),
    "last part": ("last_part", R(2, 6), {1: "n"}, [("OXP1011", "last part")], [R(2, 6), R(2, 8)]),
    "second half": ("second_half", R(2, 6), {1: "n"}, [("OXP1011", "second half")], [R(2, 6), R(2, 3)]),
    "second half as it was allowed": (
        *("second_half", R(2, 6), {1: torch.export.Dim.AUTO}),
        *([("OXP1011", "second half")], [R(2, 6), R(2, 3)]),
    ),
    "squeezed in place": ("in_place", R(1, 3), {0: "n"}, [("OXP1011", "in place")], [R(1, 3)]),
    "first part": ("first_part", R(2, 6), {1: "n"}, [], [R(2, 6), R(2, 9), R(2, 1)]),
    "parts of a long dim": ("long_parts", R(2, 600), {1: "n"}, [("OXP1011", "long parts")], [R(2, 600), R(2, 1000)]),
    "gate": ("gate", R(2, 6), {1: "n"}, [("OXP1041", "gate")], [R(2, 6), R(2, 10)]),
    "parts as they were allowed": ("parts", R(2, 6), {1: torch.export.Dim.AUTO}, [("OXP1034", "parts")], [R(2, 6)]),
    "loop as it was allowed": ("loop", R(3, 4), {0: torch.export.Dim.AUTO}, [("OXP1034", "loop")], [R(3, 4)]),
    "branch as it was allowed": ("branch", R(4, 3), {0: torch.export.Dim.AUTO}, [("OXP1011", "branch")], [R(4, 3), R(7, 3)]),
    "branch by a size of 1": ("single", R(4, 3), {0: "n"}, [("OXP1011", "single")], [R(4, 3), R(7, 3)]),
    "remainder": ("halves", R(2, 6), {1: "n"}, [("OXP1011", "halves")], [R(2, 6), R(2, 8)]),
    "remainder of a Dim": ("halves", R(2, 7), {1: torch.export.Dim("n")}, [("OXP1011", "halves")], [R(2, 7), R(2, 11)]),
    "remainder that is promised": ("even", R(2, 6), {1: 2 * torch.export.Dim("half")}, [], [R(2, 6), R(2, 10)]),
    "remainders": ("quarters", R(6, 3), {0: "n"}, [("OXP1011", "quarters")], [R(6, 3), R(10, 3)]),
    "remainders of a Dim": ("quarters", R(7, 3), {0: torch.export.Dim("n")}, [("OXP1011", "quarters")], [R(11, 3)]),
    "branch": ("branch", R(4, 3), {0: "n"}, [("OXP1011", "branch")], [R(4, 3), R(7, 3)]),
    "refused remainder": ("equal_halves", R(2, 6), {1: "n"}, [("OXP1041", "equal halves")], [R(2, 6), R(2, 8)]),
    "view": ("pairs", R(2, 6), {1: "n"}, [], [R(2, 6), R(2, 7)]),
    "step": ("every_second", R(2, 3), {0: "n"}, [], [R(2, 3), R(7, 3)]),
}


@pytest.mark.parametrize(("name", "x", "shape", "expected", "others"), NAMED.values(), ids=NAMED)
def test_what_a_model_assumes_of_a_named_dim_is_told(
    load: Load,
    marked: Marked,
    name: str,
    x: torch.Tensor,
    shape: dict[int, Any],
    expected: list[tuple[str, str]],
    others: list[torch.Tensor],
) -> None:
    model = getattr(load(MODELS), name)
    program = onnxplain.export(model, (x,), dynamic_shapes={"x": shape})
    assert [each for each in found(program) if each[0] != "OXP1025"] == [(rule, marked(place)[0]) for rule, place in expected]
    for other in others:
        torch.testing.assert_close(program(other)[0], model(other), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "size", "least", "most"), [("parts", 6, 5, 6), ("parts", 5, 5, 6), ("last_part", 6, 5, 8), ("long_parts", 600, 501, 1000)]
)
@pytest.mark.parametrize("dim", ["n", torch.export.Dim("n")], ids=["str", "Dim"])
def test_the_sizes_for_which_a_graph_has_all_parts(load: Load, name: str, size: int, least: int, most: int, dim: Any) -> None:
    model = getattr(load(MODELS), name)
    program = onnxplain.export(model, (R(2, size),), dynamic_shapes={"x": {1: dim}}, control_flow="report")
    (finding,) = program.diagnostics.findings
    assert finding.rule.constraint == f"n >= {least} and n <= {most}"  # type: ignore[attr-defined]


AUTO, T, HALF = torch.export.Dim.AUTO, torch.export.Dim("T", min=2, max=16), torch.export.Dim("half", min=1, max=9)


@pytest.mark.parametrize(
    ("name", "args", "shapes", "rule"),
    [
        ("half", (R(4, 3),), {"x": {0: "B", 1: AUTO}}, "OXP1011"),
        ("half", (R(3, 3),), {"x": (HALF + 1, "T")}, "OXP1011"),
        ("last of three", (R(6, 3),), {"x": (2 * HALF, None)}, "OXP1011"),
        ("one chunk", (R(4, 3),), {"x": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim("B")}}, ""),
        ("scaled", (R(6, 5),), {"x": {0: torch.export.Dim("B")}}, ""),
        ("ninth", (R(4, 5),), {"x": {0: "B", 1: AUTO}}, "OXP1034"),
        ("padded", (R(4, 5), R(5, 5)), {"x": {1: T}, "y": {0: T}}, ""),
        ("counted", (R(4, 5),), {"x": {0: torch.export.Dim("B")}}, ""),
        ("unbound", (R(3, 6),), {"x": {1: "T"}}, "OXP1011"),
        ("number of parts", (R(3, 1, 4),), ((AUTO, AUTO, AUTO),), "OXP1034"),
        ("rests", (R(6, 2),), {"x": {0: "B"}}, "OXP1011"),
        ("last of three", (R(3, 5),), True, "OXP1034"),
        ("last of three", (R(3, 5),), {"x": {0: AUTO}}, "OXP1034"),
        ("last of three", (R(3, 5),), {"x": ("B", AUTO)}, "OXP1011"),
        ("last of three", (R(6, 5),), {"x": {0: torch.export.Dim("B", min=2)}}, "OXP1011"),
        ("last of three", (R(6, 5),), {"x": {0: torch.export.Dim("B", min=5)}}, ""),
        ("last of three", (R(3, 5),), {"x": {0: torch.export.Dim.DYNAMIC}}, "OXP1011"),
    ],
)
def test_assumptions_are_told_however_dims_are_specified(
    load: Load, marked: Marked, name: str, args: tuple[torch.Tensor, ...], shapes: Any, rule: str
) -> None:
    program = onnxplain.export(getattr(load(MODELS), name.replace(" ", "_")), args, dynamic_shapes=shapes)
    assert found(program) == ([(rule, *marked(name))] if rule else [])


def test_a_size_that_a_slice_limits_is_told(load: Load, marked: Marked) -> None:
    shapes = {"x": {0: T}, "y": {0: torch.export.Dim("B", min=2, max=16)}}
    try:
        told = found(onnxplain.export(load(MODELS).short, (R(2), R(2)), dynamic_shapes=shapes))
    except ExportFailed as failed:
        # NOTE: torch 2.15 refuses it.
        told = [(each.rule.id, each.location and each.location.line) for each in failed.findings]
    assert told in ([("OXP1011", *marked("short"))], [("OXP1003", *marked("short"))])


@pytest.mark.parametrize("dim", ["n", torch.export.Dim("n"), torch.export.Dim.DYNAMIC])
@pytest.mark.parametrize(("name", "place"), [("positions", "positions"), ("squeeze", "squeeze"), ("squeeze_every", "squeeze every")])
def test_named_dim_of_1_that_the_model_takes_for_1_is_fixed(load: Load, marked: Marked, dim: Any, name: str, place: str) -> None:
    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(getattr(load(MODELS), name), (R(2, 1, 3),), dynamic_shapes={"x": {1: dim}})
    found = [(each.rule.id, each.location and each.location.line) for each in caught.value.findings if each.rule.id != "OXP1025"]
    assert found == [("OXP1003", *marked(place))]


@pytest.mark.parametrize("strategy", ["non-strict", "strict"])
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("squeeze", R(2, 1, 3), ("OXP1034", "squeeze")),
        ("positions", R(2, 1, 3), ("OXP1034", "positions")),
        ("halves", R(2, 7), ("OXP1011", "halves")),
    ],
)
def test_sizes_of_1_and_remainders_by_each_strategy(
    load: Load, marked: Marked, strategy: str, name: str, x: torch.Tensor, expected: tuple[str, str]
) -> None:
    model = getattr(load(MODELS), name)
    program = onnxplain.export(model, (x,), dynamic_shapes=True, strategies=(strategy,))
    assert found(program) == [(expected[0], *marked(expected[1]))]
    torch.testing.assert_close(program(x)[0], model(x))


def test_names_of_dims_tell_where_they_are(load: Load) -> None:
    module = load(MODELS)
    program = onnxplain.export(module.nested, ({"pair": (R(2, 3), [R(2, 3)])},), kwargs={"scale": R(4, 1, 1)}, dynamic_shapes=True)
    shapes = [[str(dim) for dim in value.shape or ()] for value in program.model.graph.inputs]
    assert shapes == [["batch_pair_0_dim_0", "batch_pair_0_dim_1"]] * 2 + [["scale_dim_0", "1", "1"]]


class Variadic(torch.nn.Module):
    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return xs[0] * 2


@pytest.mark.parametrize("shapes", [(({0: "batch"},),), ({0: "batch"},), {"xs": ({0: "batch"},)}])
def test_names_of_variadic_inputs(shapes: Any) -> None:
    program = onnxplain.export(Variadic(), (R(2, 3),), dynamic_shapes=shapes)
    assert [str(dim) for dim in program.model.graph.inputs[0].shape or ()] == ["batch", "3"]


def test_dims_of_one_variadic_input_stand_for_all() -> None:
    program = onnxplain.export(Variadic(), (R(2, 3), R(2, 3)), dynamic_shapes={"xs": {0: "batch"}})
    assert dims(program) == [["a", 3], ["a", 3]]


@pytest.mark.parametrize("dynamic_shapes", [None, False])
def test_static_unless_told(dynamic_shapes: bool | None) -> None:
    program = onnxplain.dynamo_export(Small(), torch.randn(2, 8), export_options=ExportOptions(dynamic_shapes=dynamic_shapes))
    assert dims(program) == [[2, 8]]
    assert found(program) == []


def test_a_program_has_said_which_dims_are_dynamic() -> None:
    captured = torch.export.export(Small(), (torch.randn(2, 8),))
    program = onnxplain.dynamo_export(captured, torch.randn(2, 8), export_options=ExportOptions(dynamic_shapes=True))
    assert [rule for rule, _ in found(program)] == ["OXP1010"]
    assert dims(program) == [[2, 8]]


def test_few_notes_for_a_transformer() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 50}
    model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()

    def inputs(*shape: int) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.randint(0, 50, shape), "attention_mask": torch.ones(shape, dtype=torch.long)}

    program = onnxplain.dynamo_export(model, export_options=ExportOptions(dynamic_shapes=True), **inputs(2, 7))
    assert found(program) == []
    other = inputs(3, 11)
    torch.testing.assert_close(program(**other)[0], model(**other).last_hidden_state, rtol=1e-4, atol=1e-4)


# Options


def test_diagnostic_options_count(load: Load) -> None:
    model = load(MODELS).branch
    options = ExportOptions(dynamic_shapes=True, diagnostic_options=DiagnosticOptions(warnings_as_errors=True))
    with pytest.raises(ExportFailed) as caught:
        onnxplain.dynamo_export(model, torch.randn(3, 4), export_options=options)
    assert [(each.rule.id, each.level) for each in caught.value.findings] == [("OXP1011", Level.ERROR)]


def doubled(x: Any) -> Any:
    return op.Mul(x, 2.0)


def tripled(x: Any) -> Any:
    return op.Mul(x, 3.0)


def broken(x: Any) -> Any:
    raise KeyError("no such thing")


def test_registry_decides_over_translation_and_opset() -> None:
    registry = OnnxRegistry(opset_version=18)
    registry.register_op(tripled, "aten", "relu")
    registry.register_op(doubled, "aten", "relu")
    program = onnxplain.dynamo_export(torch.relu, -torch.ones(3), export_options=ExportOptions(onnx_registry=registry))
    torch.testing.assert_close(program(torch.ones(3))[0], torch.full((3,), 2.0))
    assert program.model.opset_imports[""] == 18
    # The registry has not changed, and serves again.
    assert [each.function for each in (registry.get_op_functions("aten", "relu") or [])[-2:]] == [tripled, doubled]
    again = onnxplain.dynamo_export(torch.relu, torch.ones(3), export_options=ExportOptions(onnx_registry=registry))
    torch.testing.assert_close(again(torch.ones(3))[0], torch.full((3,), 2.0))


def test_translation_that_fails_is_a_finding_at_its_line() -> None:
    registry = OnnxRegistry()
    registry.register_op(broken, "aten", "relu")
    with pytest.raises(ExportFailed) as caught:
        onnxplain.dynamo_export(torch.relu, torch.ones(3), export_options=ExportOptions(onnx_registry=registry))
    (finding,) = caught.value.findings
    assert finding.rule.id == "OXP3004"
    assert finding.location is not None
    assert finding.location.line == broken.__code__.co_firstlineno + 1


def test_complex_translation_is_for_complex_tensors_only() -> None:
    registry = OnnxRegistry()
    registry.register_op(doubled, "aten", "neg", is_complex=True)
    options = ExportOptions(onnx_registry=registry)
    real = onnxplain.dynamo_export(torch.neg, torch.ones(3), export_options=options)
    torch.testing.assert_close(real(torch.ones(3))[0], -torch.ones(3))
    pairs = onnxplain.dynamo_export(torch.neg, torch.ones(3, dtype=torch.complex64), export_options=options)
    value = torch.complex(torch.ones(3), torch.full((3,), 2.0))
    torch.testing.assert_close(torch.view_as_complex(pairs(value)[0]), 2 * value)


# The user's strategies


@dataclasses.dataclass
class Own:
    """Captures as torch.export does, or fails to."""

    name: str = "own"
    error: Exception | None = None
    result: Any = None
    calls: int = 0

    def generate_fx(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> Any:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.result or torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)


def test_own_strategy_captures() -> None:
    own = Own()
    assert isinstance(own, onnxplain.FXGraphExtractor)
    model = Small().eval()
    program = onnxplain.export(model, (torch.randn(2, 8),), strategies=[own], dynamic_shapes={"x": {0: "batch"}})
    assert own.calls == 1
    x = torch.randn(5, 8)
    torch.testing.assert_close(program(x)[0], model(x))
    onnxplain.dynamo_export(model, torch.randn(2, 8), export_options=ExportOptions(strategies=[own]))
    assert own.calls == 2
    assert any("strategy own" in event.text for event in program.diagnostics.events)


class Static:
    name = "static"

    def generate_fx(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> Any:
        return torch.export.export(model, args, kwargs)


def test_own_strategy_and_not_the_model_leaves_dims_static() -> None:
    options = ExportOptions(dynamic_shapes=True, strategies=[Static()])
    program = onnxplain.dynamo_export(Small().eval(), torch.randn(2, 8), export_options=options)
    assert dims(program) == [[2, 8]]
    assert [rule for rule, _ in found(program)] == ["OXP1010"]


def test_next_strategy_is_tried_after_an_own_one() -> None:
    own = Own(error=RuntimeError("not today"))
    program = onnxplain.export(Small().eval(), (torch.randn(2, 8),), strategies=[own, "non-strict"])
    assert own.calls == 1
    assert found(program) == []


def captured(*args: torch.Tensor) -> torch.export.ExportedProgram:
    class Total(torch.nn.Module):
        def forward(self, *rows: torch.Tensor) -> torch.Tensor:
            return sum(rows)  # type: ignore[return-value]

    return torch.export.export(Total(), args)


FAILURES = {
    "raises": Own(error=RuntimeError("not today")),
    "another type": Own(result=torch.nn.Identity()),
    "two inputs": Own(result=captured(R(2, 8), R(2, 8))),
    "another shape": Own(result=captured(R(2, 5))),
    "another rank": Own(result=captured(R(2, 8, 1))),
    "another dtype": Own(result=captured(R(2, 8).half())),
}


@pytest.mark.parametrize("own", FAILURES.values(), ids=FAILURES)
def test_failure_of_an_own_strategy_is_a_finding(own: Own) -> None:
    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(Small().eval(), (torch.randn(2, 8),), strategies=[own])
    (finding,) = caught.value.findings
    assert finding.rule.id == "OXP1009"
    assert finding.location is not None
    assert finding.location.file == __file__
    assert finding.location.function == "generate_fx"
    # The next one is tried then.
    assert found(onnxplain.export(Small().eval(), (torch.randn(2, 8),), strategies=[own, "non-strict"])) == []


# Whether the model is being exported

ASKING = """
    import torch
    import onnxplain

    class Asking(torch.nn.Module):
        def forward(self, x):
            if not torch.compiler.is_dynamo_compiling():
                print(onnxplain.is_in_onnx_export())
            if onnxplain.is_in_onnx_export():  # asked
                return x * 2
            return x * {factor}
"""


@pytest.mark.parametrize("strategy", ["non-strict", "strict"])
def test_model_can_ask(load: Load, marked: Marked, capsys: pytest.CaptureFixture[str], strategy: str) -> None:
    model = load(ASKING.format(factor=2)).Asking()
    program = onnxplain.export(model, (torch.ones(3),), strategies=(strategy,), verify=True)
    torch.testing.assert_close(program(torch.ones(3))[0], torch.full((3,), 2.0))
    assert ("OXP1021", marked("asked")[0]) in found(program)
    # Verification is not an export, and TorchDynamo keeps no answers.
    answers = capsys.readouterr().out.split()
    assert answers[-1] == "False"
    assert ("True" in answers) == (strategy == "non-strict")
    assert onnxplain.is_in_onnx_export() is False


def test_not_exporting_any_more_after_a_failure() -> None:
    answers = []

    def failing(x: torch.Tensor) -> torch.Tensor:
        answers.append(onnxplain.is_in_onnx_export())
        raise ValueError("no")

    with pytest.raises(ExportFailed):
        onnxplain.export(failing, (torch.ones(3),), strategies=("non-strict",))
    assert answers[0] is True
    assert answers[-1] is False
    assert onnxplain.is_in_onnx_export() is False


# The program


def small(**options: Any) -> onnxplain.ONNXProgram:
    return onnxplain.export(Small().eval(), (torch.randn(2, 8),), dynamic_shapes={"x": {0: "batch"}}, **options)


def affine(x: torch.Tensor, y: torch.Tensor, scale: float = 2.0, bias: torch.Tensor | None = None) -> torch.Tensor:
    return x - scale * y if bias is None else x - scale * y + bias


EXAMPLES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "positional": ((R(2, 3), R(2, 3)), {}),
    "keywords": ((), {"y": R(2, 3), "x": R(2, 3)}),
    "both": ((R(2, 3),), {"y": R(2, 3)}),
    "with defaults": ((R(2, 3), R(2, 3), 2.0, None), {}),
}
CALLS: list[tuple[str, dict[str, str]]] = [
    ("x y", {}),
    ("x", {"y": "y"}),
    ("", {"y": "y", "x": "x"}),
    ("x y", {"bias": "none"}),
    ("x y two none", {}),
    ("x y", {"scale": "two"}),
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_called_as_the_model_is(example: str) -> None:
    args, kwargs = EXAMPLES[example]
    program = onnxplain.export(affine, args, kwargs=kwargs)
    values = {"x": R(2, 3), "y": R(2, 3), "two": 2.0, "none": None}
    want = affine(values["x"], values["y"])  # type: ignore[arg-type]
    for positional, named in CALLS:
        given = [values[name] for name in positional.split()], {name: values[value] for name, value in named.items()}
        torch.testing.assert_close(program(*given[0], **given[1])[0], want)
        torch.testing.assert_close(program.call_reference(*given[0], **given[1])[0], want)
        torch.testing.assert_close(program.compute_values([program.model.graph.outputs[0].name or ""], *given)[0], want)
        flat = program.adapt_torch_inputs_to_onnx(*given[0], **given[1])
        assert all(each is values[value.name or ""] for each, value in zip(flat, program.model.graph.inputs, strict=True))


def test_a_program_that_is_given_knows_the_names_of_its_inputs() -> None:
    class Affine(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            return affine(x, y, bias=bias)

    program = onnxplain.dynamo_export(torch.export.export(Affine(), (R(2, 3), R(2, 3))))
    x, y = R(2, 3), R(2, 3)
    for found in (program(x, y=y), program(y=y, x=x), program(x, y, None), program(x, y, bias=None)):
        torch.testing.assert_close(found[0], affine(x, y))


def test_any_number_of_inputs() -> None:
    def total(*rows: torch.Tensor, scale: float = 2.0, **others: torch.Tensor) -> torch.Tensor:
        return scale * (rows[0] - rows[1]) + others["shift"]

    program = onnxplain.export(total, (R(3), R(3)), kwargs={"shift": R(3)})
    x, y, shift = R(3), R(3), R(3)
    for found in (program(x, y, shift=shift), program(x, y, shift=shift, scale=2.0), program(x, y, shift=shift, mask=None)):
        torch.testing.assert_close(found[0], total(x, y, shift=shift))


def test_no_values_are_computed_of_none() -> None:
    assert list(small().compute_values([], (X,))) == []


def test_what_onnx_runtime_raises_is_the_cause() -> None:
    # ONNX Runtime has no kernel for it in bfloat16; and it finds at run time that an index is out of bounds.
    x = torch.ones(3, dtype=torch.bfloat16)
    unsupported = onnxplain.export(lambda x: torch.cumsum(x, 0), (x,))
    (name,) = [value.name or "" for value in unsupported.model.graph.outputs]
    indexed = onnxplain.export(lambda x, index: x[index], (torch.ones(3), torch.tensor([0])))
    for run in (
        lambda: unsupported(x),
        lambda: unsupported(x, options=ONNXRuntimeOptions()),
        lambda: unsupported.compute_values([name], (x,)),
        unsupported.initialize_inference_session,
        lambda: indexed(torch.ones(3), torch.tensor([99])),
    ):
        with pytest.raises(onnxplain.OnnxExporterError) as caught:
            run()
        assert type(caught.value.__cause__).__module__.startswith("onnxruntime")


def test_what_an_initializer_raises_goes_through() -> None:
    def initializer(model: str | bytes) -> onnxruntime.InferenceSession:
        raise KeyError("no device")

    with pytest.raises(KeyError):
        small().initialize_inference_session(initializer)


def test_runtime_options_are_honoured(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, Any]] = []

    class Session(onnxruntime.InferenceSession):  # type: ignore[misc]
        def __init__(self, model: Any, options: Any, *, providers: Any, provider_options: Any = None, **more: Any) -> None:
            # NOTE: the CPU has no option whose effect could be seen.
            made.append((providers, provider_options))
            super().__init__(model, options, providers=providers, provider_options=provider_options, **more)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    program = small()
    x = torch.randn(3, 8)
    expected = program(x)[0]
    session_options = onnxruntime.SessionOptions()
    session_options.enable_profiling = True
    session_options.profile_file_prefix = str(tmp_path / "profile")
    options = ONNXRuntimeOptions(
        session_options=[session_options],
        execution_providers=["CPUExecutionProvider"],
        execution_provider_options=[{"arena_extend_strategy": "kSameAsRequested"}],
    )
    torch.testing.assert_close(program(x, options=options)[0], expected)
    assert made[-1] == (["CPUExecutionProvider"], [{"arena_extend_strategy": "kSameAsRequested"}])
    program.release()
    assert list(tmp_path.glob("profile*"))
    torch.testing.assert_close(program(x, options=ONNXRuntimeOptions(session_options=onnxruntime.SessionOptions()))[0], expected)


def test_a_model_may_have_an_input_called_options() -> None:
    program = onnxplain.export(lambda x, options: x + options, (torch.ones(2),), kwargs={"options": torch.ones(2)})
    torch.testing.assert_close(program(torch.ones(2), options=torch.ones(2))[0], torch.full((2,), 2.0))


def test_session_of_ones_own_and_release() -> None:
    program = small()
    made: list[str | bytes] = []

    def initializer(model: str | bytes) -> onnxruntime.InferenceSession:
        made.append(model)
        return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    program.initialize_inference_session(initializer)
    program(torch.randn(3, 8))
    program(torch.randn(4, 8))
    assert len(made) == 1
    program.release()
    program(torch.randn(3, 8))
    assert len(made) == 1


def test_rename_axes() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x, y])

    program = onnxplain.export(model, (torch.ones(2, 3), torch.ones(5, 3)), dynamic_shapes={"x": {0: "s1"}, "y": {0: "s11"}})
    program(torch.ones(2, 3), torch.ones(4, 3))
    batch = program.model.graph.inputs[0].shape[0]  # type: ignore[index]
    program.rename_axes({batch: "batch", "s11": "more"})
    (session,) = [onnxruntime.InferenceSession(program.model_proto.SerializeToString())]
    assert [each.shape for each in session.get_inputs()] == [["batch", 3], ["more", 3]]
    assert {name for name in ("batch", "more", "s1", "s11") if name in str(session.get_outputs()[0].shape[0])} == {"batch", "more"}
    assert program(torch.ones(2, 3), torch.ones(4, 3))[0].shape == (8, 3)


def test_compute_values() -> None:
    model = Small().eval()
    program = onnxplain.export(model, (torch.randn(2, 8),), dynamic_shapes={"x": {0: "batch"}})
    (relu,) = [node for node in program.model.graph if node.op_type == "Relu"]
    inner = relu.inputs[0].name or ""  # type: ignore[union-attr]
    before, x = program.model_proto.SerializeToString(), torch.randn(3, 8)
    found = program.compute_values(["x", inner, "linear.bias", inner], (x,))
    for got, want in zip(found, (x, model.linear(x), model.linear.bias, model.linear(x)), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert program.model_proto.SerializeToString() == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.int64])
def test_reference_evaluator_agrees(dtype: torch.dtype) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    program = onnxplain.export(lambda x: (x + x, x.sum()), (x,))
    for got, want in zip(program.call_reference(x), (x + x, x.sum()), strict=True):
        torch.testing.assert_close(torch.view_as_complex(got) if dtype.is_complex else got, want)


def test_save_diagnostics(tmp_path: pathlib.Path) -> None:
    program = small()
    program.save_diagnostics(tmp_path / "log.sarif")
    assert json.loads((tmp_path / "log.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


# Refused arguments

X = torch.randn(2, 8)


class Nameless(onnxplain.FXGraphExtractor):
    """As subclasses of torch.onnx's were."""

    def generate_fx(self, model: Any, args: Any, kwargs: Any, dynamic_shapes: Any) -> Any:
        return None


def call(*args: Any, **kwargs: Any) -> Callable[[], object]:
    return lambda: small()(*args, **kwargs)


def baked() -> object:
    return onnxplain.dynamo_export(lambda x, bias: x + bias, X, bias=3.0)(X, bias=4.0)


def shared() -> object:
    shapes = {"x": {0: "rows"}, "y": {0: "rows"}}
    return onnxplain.export(torch.nn.Bilinear(2, 2, 1), (torch.ones(3, 2),) * 2, dynamic_shapes=list(shapes.values()))(
        torch.ones(3, 2), torch.ones(4, 2)
    )


def keys() -> object:
    return onnxplain.dynamo_export(lambda d: d["a"] - d["b"], {"a": X, "b": X})({"a": X, "c": X})


def affined(*args: Any, **kwargs: Any) -> Callable[[], object]:
    return lambda: onnxplain.export(affine, (X, X))(*args, **kwargs)


def without_weights() -> onnxplain.ONNXProgram:
    with onnxplain.enable_fake_mode():
        model = Small().eval()
    return onnxplain.export(model, (X,))


def unfit() -> torch.Tensor:
    with torch._subclasses.FakeTensorMode():
        return torch.ones(2, 8)


REFUSED: dict[str, tuple[str, Callable[[], object]]] = {
    "export_options": ("export_options", lambda: onnxplain.dynamo_export(Small(), X, export_options={})),  # type: ignore[arg-type]
    "model": ("model", lambda: onnxplain.dynamo_export(Small, X)),
    "no model": ("model", lambda: onnxplain.dynamo_export(3, X)),  # type: ignore[arg-type]
    "dynamic_shapes of options": ("dynamic_shapes", lambda: ExportOptions(dynamic_shapes={"x": {0: "batch"}})),  # type: ignore[arg-type]
    "dynamic_shapes": ("dynamic_shapes", lambda: onnxplain.export(Small(), (X,), dynamic_shapes=3)),  # type: ignore[arg-type]
    "onnx_registry": ("onnx_registry", lambda: ExportOptions(onnx_registry=OnnxRegistry)),  # type: ignore[arg-type]
    "diagnostic_options": ("diagnostic_options", lambda: ExportOptions(diagnostic_options="all")),  # type: ignore[arg-type]
    "fake_context": ("fake_context", lambda: ExportOptions(fake_context=True)),
    "strategy": ("strategies", lambda: onnxplain.export(Small(), (X,), strategies=["fast"])),
    "strategy of another name": ("strategies", lambda: onnxplain.export(Small(), (X,), strategies=[Own(name="strict")])),
    "strategy without a name": ("strategies", lambda: onnxplain.export(Small(), (X,), strategies=[Nameless()])),
    "strategy without a method": ("strategies", lambda: onnxplain.export(Small(), (X,), strategies=[object()])),  # type: ignore[list-item]
    "strategies": ("strategies", lambda: ExportOptions(strategies=3)),  # type: ignore[arg-type]
    "strategies of options": ("strategies", lambda: ExportOptions(strategies=["fast", {}])),  # type: ignore[list-item]
    "no strategy": ("strategies", lambda: onnxplain.export(Small(), (X,), strategies=[])),
    "opset_version": ("opset_version", lambda: OnnxRegistry("18")),  # type: ignore[arg-type]
    "namespace": ("namespace", lambda: OnnxRegistry().is_registered_op("aten::add", "add")),
    "op_name": ("op_name", lambda: OnnxRegistry().get_op_functions("aten", "add.Tensor")),
    "overload": ("overload", lambda: OnnxRegistry().register_op(doubled, "aten", "add", "Ten sor")),
    "function": ("function", lambda: OnnxRegistry().register_op("airy", "aten", "add")),  # type: ignore[arg-type]
    "is_complex": ("is_complex", lambda: OnnxRegistry().register_op(doubled, "aten", "add", is_complex="no")),  # type: ignore[arg-type]
    "session_options": ("session_options", lambda: ONNXRuntimeOptions(session_options="fast")),  # type: ignore[arg-type]
    "two session_options": ("session_options", lambda: ONNXRuntimeOptions(session_options=[onnxruntime.SessionOptions()] * 2)),
    "execution_providers": ("execution_providers", lambda: ONNXRuntimeOptions(execution_providers="CPUExecutionProvider")),
    "a provider": ("execution_providers", lambda: ONNXRuntimeOptions(execution_providers=["NoExecutionProvider"])),
    "provider options": ("execution_provider_options", lambda: ONNXRuntimeOptions(execution_provider_options=[{}])),
    "options given twice": (
        "execution_provider_options",
        lambda: ONNXRuntimeOptions(execution_providers=[("CPUExecutionProvider", {})], execution_provider_options=[{}]),
    ),
    "too few inputs": ("args", call()),
    "an input that is missing": ("y", affined(X)),
    "an input that is given twice": ("x", affined(X, X, x=X)),
    "another value than the default": ("scale", affined(X, X, scale=3.0)),
    "another value than the default, by position": ("scale", affined(X, X, 3.0)),
    "an input that was left out": ("bias", affined(X, X, bias=X)),
    "a keyword without a value": ("kwargs", affined(X, X, mask=None)),
    "an input on the meta device": ("x", call(X.to("meta"))),
    "a sparse input": ("x", call(X.to_sparse())),
    "a fake input": ("x", lambda: small()(unfit())),
    "values without weights": ("weights", lambda: without_weights().compute_values(["x"], (X,))),
    "a run without weights": ("weights", lambda: without_weights()(X, options=ONNXRuntimeOptions())),
    "no names": ("value_names", lambda: small().compute_values(None, (X,))),  # type: ignore[arg-type]
    "a number of values": ("value_names", lambda: small().compute_values(3, (X,))),  # type: ignore[arg-type]
    "names that are generated": ("value_names", lambda: small().compute_values((each for each in "x"), (X,))),  # type: ignore[arg-type]
    "kwargs of values": ("kwargs", lambda: small().compute_values(["x"], (), ["x"])),  # type: ignore[arg-type]
    "no session": ("initializer", lambda: small().initialize_inference_session(lambda _: None)),  # type: ignore[arg-type,return-value]
    "too many inputs": ("args", call(X, X)),
    "a keyword": ("kwargs", call(X, y=X)),
    "options of another type": ("kwargs", call(X, options={"providers": []})),
    "an input's nesting": ("x", call([X])),
    "an input's keys": ("args", keys),
    "an input's type": ("x", call("text")),
    "an input's dtype": ("x", call(X.double())),
    "an input's rank": ("x", call(torch.randn(8))),
    "an input's size": ("x", call(torch.randn(2, 7))),
    "equal sizes": ("input2", shared),
    "a constant": ("bias", baked),
    "inputs of the reference": ("x", lambda: small().call_reference(torch.randn(2, 7))),
    "adapted inputs": ("args", lambda: small().adapt_torch_inputs_to_onnx(X, X)),
    "value_names": ("value_names", lambda: small().compute_values(["nothing"], (X,))),
    "one name": ("value_names", lambda: small().compute_values("x", (X,))),
    "args of values": ("args", lambda: small().compute_values(["x"], X)),  # type: ignore[arg-type]
    "an axis": ("rename_mapping", lambda: small().rename_axes({"nothing": "rows"})),
    "an axis' name": ("batch", lambda: small().rename_axes({"batch": 3})),  # type: ignore[dict-item]
    "axes": ("rename_mapping", lambda: small().rename_axes("batch")),  # type: ignore[arg-type]
    "initializer": ("initializer", lambda: small().initialize_inference_session("cpu")),  # type: ignore[arg-type]
    "destination": ("destination", lambda: small().save(3, external_data=True)),  # type: ignore[arg-type]
    "destination of a log": ("destination", lambda: small().save_diagnostics(3)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("named", "refused"), REFUSED.values(), ids=REFUSED)
def test_refused_with_the_arguments_name(named: str, refused: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        refused()
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, onnxplain.OnnxExporterError)
    text = str(caught.value)
    assert named in text
    assert "expected" in text


def test_everything_raised_has_one_base() -> None:
    raised = [each for each in vars(diagnostics).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert ExportFailed in raised
    # NOTE: these never leave a stage.
    inner = {diagnostics.StageFailed, diagnostics.RaisedByModel}
    assert all(issubclass(each, onnxplain.OnnxExporterError) for each in raised if each not in inner)
    # As the class of that name in torch.onnx.
    assert issubclass(onnxplain.OnnxExporterError, RuntimeError)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ExportOptions)])
def test_each_option_refuses_a_wrong_type(field: str) -> None:
    with pytest.raises(onnxplain.InvalidArgument) as raised:
        ExportOptions(**{field: object()})
    assert str(raised.value).startswith(f"{field}: ")


def test_the_defaults_are_those_of_torch() -> None:
    ours, theirs = (inspect.signature(function).parameters for function in (onnxplain.export, torch.onnx.export))
    # NOTE: where these are not given, onnxplain chooses by the size of the weights, and writes no artifacts.
    shared = set(ours) & set(theirs) - {"external_data", "artifacts_dir"}
    assert len(shared) >= 18
    assert {name: ours[name].default for name in shared} == {name: theirs[name].default for name in shared}
