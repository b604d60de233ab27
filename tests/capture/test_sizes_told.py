"""What an export assumes of sizes: it is told, or the model is right for the other sizes too."""

from __future__ import annotations

import math
import pathlib
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from marks import IS_3_11, needs_columns
from packaging.version import Version
from torch.export import Dim

import onnxplain
from onnxplain.diagnostics import Confidence

Load = Callable[..., types.ModuleType]

NET = """
    import torch


    class Net(torch.nn.Module):
        def forward(self, x, y):
            {}
"""

RELATES_PARTS = Version(torch.__version__) >= Version("2.12")
"""Whether torch relates the size of a slice to that of the whole."""


def exported(load: Load, body: str, sizes: Sequence[Sequence[int]], shapes: Any) -> tuple[torch.nn.Module, onnxplain.ONNXProgram]:
    model = load(NET.format(body.replace("\n", "\n            "))).Net()
    return model, onnxplain.export(model, tuple(torch.rand(*each) for each in sizes), dynamic_shapes=shapes)


def told(program: onnxplain.ONNXProgram, rule: str = "OXP1011") -> list[str]:
    findings = [each for each in program.diagnostics.findings if each.rule.id == rule]
    return [dict(zip(each.rule.arguments(), each.rule.argument_texts(), strict=True))["constraint"] for each in findings]


@pytest.mark.parametrize(
    "size",
    [
        "max(x.shape[1] - 1, min(x.shape[0], 3), 2)",
        "min(x.shape[0], 3, x.shape[1])",
        "max(*x.shape, 4)",
        "max(x.shape[1] / 4, 1.0)",
        "min(4 / x.shape[0], 9 / float(x.shape[1]), 2.5)",
        "int(8 * min(4 / min(*x.shape), 9 / max(*x.shape)))",
    ],
)
def test_the_largest_of_several_sizes_is_computed(load: Load, size: str) -> None:
    model, program = exported(load, f"return x * {size} + y", [(4, 3), (4, 3)], True)
    assert told(program) == []
    for sizes in ((4, 3), (6, 2), (2, 7), (1, 1)):
        x = torch.rand(*sizes)
        torch.testing.assert_close(program(x, x)[0], model(x, x))


@pytest.mark.parametrize(
    ("body", "constraints"),
    [
        ("return x * max(min((x.shape[1], 2), default=9), 1)", ["T > 2"]),
        ("try:\n    return x.view(x.shape[1])\nexcept RuntimeError:\n    return x", ["B*T == T"]),
        ("try:\n    return x @ x\nexcept (ValueError, Exception):\n    return x", ["T == B and B == T"]),
        ("try:\n    return x @ x\nexcept ImportError:\n    return x", []),
        ("return x.unfold(1, x.shape[1] // 2, 1)", ["T // 2 == 2"]),
        ("return -x if x.numel() == 1 else x", ["B*T != 1"]),
        ("return -x if x.shape[0] + x.shape[1] == 2 else x", ["B + T != 2"]),
    ],
)
def test_a_decision_by_sizes_is_told(load: Load, body: str, constraints: list[str]) -> None:
    size = (1, 4) if "view" in body else (4, 4) if "@" in body else (3, 5)
    _, program = exported(load, body, [size, (1,)], (("B", "T"), None))
    assert told(program) == constraints


CHECKED = {
    "assert": ("assert x.shape[1] + 3 <= 64\nreturn x", "T <= 61"),
    "assert of a part": ("part = torch.zeros(64)[3 : 3 + x.shape[1]]\nassert part.shape[0] == x.shape[1]\nreturn x + part", "T <= 61"),
    "raise": ("if 2 * x.shape[1] > 65:\n    raise ValueError\nreturn x", "T <= 32"),
    "both": ("assert 3 < x.shape[1] <= 20\nreturn x", "T >= 4 and T <= 20"),
    "branch": ("return x if x.shape[1] <= 20 else -x", "T <= 20"),
}


@needs_columns
@pytest.mark.parametrize(("body", "constraint"), CHECKED.values(), ids=CHECKED)
def test_a_limit_of_a_name_is_stated_in_dynamic_shapes(load: Load, body: str, constraint: str) -> None:
    if "part" in body and not RELATES_PARTS:
        pytest.skip("torch 2.11 does not relate the size of a part to that of the whole")
    for name in "T", Dim("T"):
        _, program = exported(load, body, [(3, 5), (1,)], ({0: "B", 1: name}, None))
        (finding,) = (each for each in program.diagnostics.findings if each.rule.id == "OXP1011")
        assert told(program) == [constraint]
        fix = finding.fixes[-1]
        assert (fix.confidence is Confidence.SAFE) == ("if x.shape" not in body or "raise" in body or name != "T")
        (edit,) = fix.edits
        _, stated = exported(load, body, [(3, 5), (1,)], eval(edit.replacement))
        assert told(stated) == []


def test_a_loop_on_a_size_tells_the_least_size_as_well(load: Load) -> None:
    body = "count = max(x.shape[1], 4)\nwhile count > 2:\n    count //= 2\nreturn x * count"
    model, program = exported(load, body, [(3, 8), (1,)], ({0: Dim("B"), 1: Dim("T")}, None))
    assert told(program) == ["T >= 6 and T <= 11"]
    for size in (6, 11):
        x = torch.rand(2, size)
        torch.testing.assert_close(program(x, torch.rand(1))[0], model(x, None))


def test_further_parts_for_size_one_are_told(load: Load) -> None:
    body = "return torch.cat([part * index for index, part in enumerate(x.split(x.shape[0] * 3, 1))], 1)"
    assert told(exported(load, body, [(4, 4), (1,)], ({0: Dim("B")}, None))[1]) == ["B >= 2"]


@pytest.mark.parametrize(
    "body",
    [
        "return torch.nn.functional.layer_norm(x, (5,), eps=1e-3 * x.shape[0])",
        "import statistics\nreturn x * statistics.median([x.shape[0], 5, 9])",
        "import heapq\nreturn x * heapq.nsmallest(1, [x.shape[0], 5])[0]",
    ],
)
def test_a_number_from_a_size_is_told(load: Load, body: str) -> None:
    _, program = exported(load, body, [(4, 3, 5), (1,)], ({0: "B"}, None))
    assert len(told(program)) == 1


FORMS = {
    "names": ("B", "T"),
    "AUTO": (Dim.AUTO,) * 2,
    "DYNAMIC": (Dim.DYNAMIC,) * 2,
    "Dim": (Dim("B", max=64), Dim("T", max=64)),
    "True": True,
}
EVEN_ROWS = "{0} % 2 == 0"
TAKEN = {
    "dim": ("torch.softmax(x, x.shape[0] % 2)", EVEN_ROWS),
    "dim of a method": ("x.cumsum(x.shape[0] % 2)", EVEN_ROWS),
    "dims": ("x.flip(x.shape[0] % 2)", EVEN_ROWS),
    "dim of named results": ("x.sort(x.shape[0] % 2).values", EVEN_ROWS),
    "dim of a function of Python": ("torch.nn.functional.normalize(x, dim=x.shape[0] % 2)", EVEN_ROWS),
    "dim of a module": ("torch.nn.Softmax(x.shape[0] % 2)(x)", EVEN_ROWS),
    "power": ("torch.matrix_power(x[0, :3] * x[0, :3, None], x.shape[0] % 3)", "{0} % 3 == 1"),
    "offset": ("torch.diagonal(x, x.shape[1] // 2)", "{1} // 2 == 3"),
    "offset of a result": ("torch.diagonal_scatter(x, x.diagonal(x.shape[1] // 3) * 2, x.shape[1] // 3)", "{1} // 3 == 2"),
    "digits": ("torch.round(x * 10, decimals=x.shape[0] // 3)", "{0} // 3 == 1"),
    "order": ("torch.special.polygamma(x.shape[0] // 4, x + 1)", "{0} // 4 == 1"),
    "divisor": ("torch.nn.functional.avg_pool2d(x[None], 1, divisor_override=x.shape[0] // 2)", "{0} // 2 == 2"),
    "groups": ("torch.nn.functional.group_norm(torch.arange(24.0).view(1, 12, 2) + x[0, 0], x.shape[0] // 2)", "{0} // 2 == 2"),
    "number of dims": ("torch.tensordot(x, x.T, 1 + x.shape[0] % 2)", EVEN_ROWS),
    "sizes together": ("x.flip((x.shape[0] + x.shape[1]) % 2)", "({0} + {1}) % 2 == 0"),
    "a float": ("torch.nn.functional.huber_loss(x, x * 2, delta=1 / x.shape[0], reduction='none')", "1 / {0} == 0.25"),
    "a float of a function of Python": ("torch.nn.functional.layer_norm(x, x.shape[1:], eps=x.shape[0] * 0.1)", "0.1*{0} == 0.4"),
    "two numbers on a line": ("x.flip(x.shape[0] % 2).softmax((x.shape[0] + x.shape[1]) % 2)", "{0} % 2 == 0; ({0} + {1}) % 2 == 0"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("line", "constraint"), TAKEN.values(), ids=TAKEN)
def test_a_number_that_an_operator_takes_of_a_size(
    load: Load, request: pytest.FixtureRequest, line: str, constraint: str, form: str
) -> None:
    if "Softmax" in line and Version(torch.__version__) >= Version("2.15"):
        request.applymarker(pytest.mark.falls_back)  # its constructor takes an int alone, which a size is in strict mode only
    if "matrix_power" in line and Version(torch.__version__) < Version("2.12"):
        pytest.skip("this torch cannot capture it with an exponent that is made of a size")
    if line.startswith("x.flip") and not IS_3_11:
        pytest.skip("Python 3.10 does not tell which of two numbers in a line is meant")
    _, program = exported(load, f"return {line}", [(4, 6), (1,)], (FORMS[form] if form == "True" else (FORMS[form], None)))
    findings = [each for each in program.diagnostics.findings if each.rule.id in ("OXP1011", "OXP1034")]
    assert {each.location.region.line for each in findings if each.location and each.location.region} == {7}
    if {each.rule.id for each in findings} == {"OXP1011"} and form != "Dim":
        names = ("B", "T") if form == "names" else ("x.shape[0]", "x.shape[1]")
        assert told(program) == constraint.format(*names).split("; ")
    else:
        assert len(findings) == constraint.count(";") + 1


RANGES = {
    "x.unfold(0, min(2, x.shape[0]), 2)": "B >= 2",
    "torch.diff(x[::2], n=2, dim=0)": "B >= 3",
    "torch.diff(x[2:], n=2, dim=0)": "B >= 4",
    "x[3:].squeeze(0)": "B != 4",
    "x * (3 if x[1:].shape[0] + x[2:].shape[0] < 9 else 4)": "B <= 5",
}


@pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="torch 2.11 takes the sizes of slices for sizes from data")
@pytest.mark.parametrize("line", RANGES)
def test_a_computed_size_is_told_as_the_sizes_of_the_dim_where_it_is_one_sided(load: Load, line: str) -> None:
    _, program = exported(load, f"return {line}", [(5, 6), (1,)], (("B", "T"), None))
    assert told(program) == [RANGES[line]]


def test_a_number_that_an_operator_takes_of_a_size_of_another_input(load: Load) -> None:
    _, program = exported(load, "return x.cumsum(y.shape[1] % 2)", [(4, 6), (4, 6)], ({0: Dim.AUTO, 1: "T"}, {0: "B", 1: Dim.AUTO}))
    assert told(program) == ["y.shape[1] % 2 == 0"]


KEPT = [
    "x.narrow(0, x.shape[0] % 2, 1)",
    "x.roll(x.shape[0] // 2, 1)",
    "torch.float_power(x, 1 / x.shape[0])",
    "torch.nn.functional.rrelu(x - 1, 1 / x.shape[0], 0.5)",
]


@pytest.mark.parametrize("line", KEPT)
def test_a_number_that_stays_symbolic_is_not_told(load: Load, line: str) -> None:
    model, program = exported(load, f"return {line}", [(4, 6), (1,)], (("B", "T"), None))
    assert told(program) == []
    for sizes in ((4, 6), (3, 8), (7, 5)):
        x, y = torch.rand(sizes), torch.rand(1)
        torch.testing.assert_close(program(x, y)[0], model.eval()(x, y))


def test_a_number_that_an_operator_requires_is_not_told(load: Load) -> None:
    _, program = exported(load, "return x[0].flip(max(x.shape[0], 9) - 9)", [(4, 6), (1,)], (("B", "T"), None))
    assert told(program) == []


@pytest.mark.parametrize("strategies", [("non-strict",), ("strict",)])
@pytest.mark.parametrize(
    "test", ["x.shape[0] / 3 % 1 == 0", "x.shape[0] / 3 % 1 < 0.5", "x.shape[0] // 2.5 > 1", "(-x.shape[0] / 4) % 1 < 0.3"]
)
def test_a_branch_on_a_remainder_of_a_float_is_told(load: Load, test: str, strategies: Any) -> None:
    model = load(NET.format(f"return x * (2 if {test} else 3)")).Net()
    inputs = torch.rand(6), torch.rand(1)
    program = onnxplain.export(model, inputs, dynamic_shapes=({0: "B"}, None), strategies=strategies)
    (constraint,) = told(program)
    for size in range(2, 12):
        x, y = torch.rand(size), torch.rand(1)
        assert torch.equal(program(x, y)[0], model(x, y)) == eval(constraint, {"B": size, "math": math})


def test_a_correction_that_is_a_size(load: Load) -> None:
    body = "return x.std(0, correction=x.shape[0] - 1) + x.var(1, correction=x.shape[1] - 2).sum()"
    model, program = exported(load, body, [(4, 5), (1,)], ({0: "B", 1: "T"}, None))
    assert told(program) == []
    for sizes in ((4, 5), (3, 7), (6, 3)):
        x, y = torch.rand(*sizes), torch.rand(1)
        torch.testing.assert_close(program(x, y)[0], model(x, y))


@pytest.mark.parametrize("body", ["return x * int(x.shape[0] > 2)", "k = int(x.shape[0] > 2) + 3\nreturn x * k"])
def test_the_truth_about_a_size_as_a_number(load: Load, body: str) -> None:
    model = load(NET.format(body.replace("\n", "\n            "))).Net()
    program = onnxplain.export(model, (torch.rand(3), torch.rand(1)), dynamic_shapes=({0: "B"}, None), strategies=["strict"])
    assert told(program) == ["B > 2"]
    # Without `int`, `+ 3` would belong to the comparison.
    edits = [edit for finding in program.diagnostics.findings for fix in finding.fixes for edit in fix.edits]
    assert {edit.file for edit in edits} <= {__file__}


@pytest.mark.parametrize("dim", [None, Dim.AUTO, Dim.DYNAMIC, "B", Dim("B")])
@pytest.mark.parametrize("also", [Dim.AUTO, Dim.DYNAMIC])
def test_what_an_operator_assumes_of_one_dim_beside_others(load: Load, dim: Any, also: Any) -> None:
    _, program = exported(load, "return torch.ops.aten.tensor_split(x, 4, -1)[1]", [(2, 5), (1,)], ({0: dim, 1: also}, None))
    (constraint,) = told(program)
    right = [size for size in range(4, 12) if eval(constraint.replace("x.shape[1]", str(size)))]
    assert right == [5, 9]


def test_what_an_operator_assumes_of_two_dims_together(load: Load) -> None:
    body = "return torch.cat([part * number for number, part in enumerate(torch.ops.aten.tensor_split(x.flatten(), 2))])"
    _, program = exported(load, body, [(4, 6), (1,)], (("B", "T"), None))
    assert told(program) == ["(B*T) % 2 == 0"]
    _, program = exported(load, "return x.split(x.shape[0] % 5, 1)[-1]", [(4, 2), (1,)], (("B", "T"), None))
    constraint = told(program)[0]
    assert [eval(constraint, {"B": 12, "T": size}) for size in (1, 2, 3)] == [True, True, False]


ROWS = pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="torch 2.11 refuses to unpack a slice of a dynamic dim")
SLICES = pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="torch 2.11 takes the sizes of slices for sizes from data")
EVEN = pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="in torch 2.11's graph, max_pool2d needs even sizes")
POOLED = "import torch.nn.functional as F\nx = F.max_pool2d(x, 2)\nreturn {}"
"""With an x of shape (b, 3, 8, 6), 12 elements are left of each channel."""


@pytest.mark.parametrize(("h", "w"), [("h", "w"), (Dim.DYNAMIC, "w"), pytest.param(Dim("h", min=4, max=20), Dim("w", max=24), marks=EVEN)])
@pytest.mark.parametrize("b", [None, "b"])
@pytest.mark.parametrize("body", ["F.linear(x.flatten(1), y)", "x.reshape(x.shape[0], 36) @ y.T", "x.flatten(1) + y[0]"])
def test_an_operator_requires_a_number_of_elements(load: Load, body: str, b: Any, h: Any, w: Any) -> None:
    model, program = exported(load, POOLED.format(body), [(2, 3, 8, 6), (5, 36)], ({0: b, 2: h, 3: w}, None))
    (constraint,) = told(program)
    (finding,) = (each for each in program.diagnostics.findings if each.rule.id == "OXP1011")
    assert finding.location is not None
    assert "return" in finding.location.snippet
    for height, width in ((8, 6), (6, 8), (9, 7), (4, 13), (8, 8), (8, 4), (18, 6), (13, 4)):
        x, y = torch.rand(2, 3, height, width), torch.rand(5, 36)
        right = eval(constraint.replace("x.shape[2]", "h"), {"h": height, "w": width, "b": 2})
        assert right == ((height // 2) * (width // 2) == 12)
        if right:
            torch.testing.assert_close(program(x, y)[0], model(x, y))
        else:
            with pytest.raises(RuntimeError):
                model(x, y)


@pytest.mark.parametrize(
    ("dim", "constraint", "range_"),
    [
        pytest.param("h", "h >= 8 and h <= 9", 'Dim("h", min=8, max=9)', marks=EVEN),
        (Dim.DYNAMIC, "x.shape[2] >= 8 and x.shape[2] <= 9", "Dim.DYNAMIC(min=8, max=9)"),
    ],
)
def test_the_few_sizes_that_an_operator_takes(load: Load, dim: Any, constraint: str, range_: str) -> None:
    body, sizes = POOLED.format("F.linear(x.flatten(1), y)"), [(2, 3, 8, 6), (5, 36)]
    _, program = exported(load, body, sizes, ({2: dim}, None))
    assert told(program) == [constraint]
    (fix,) = (fix for each in program.diagnostics.findings for fix in each.fixes)
    assert range_ in fix.snippet or range_ in fix.edits[0].replacement
    _, program = exported(load, body, sizes, ({2: eval(range_)}, None))
    assert told(program) == []


@SLICES
@pytest.mark.parametrize("dim", ["b", Dim("b"), Dim("b", max=9), Dim.DYNAMIC])
def test_a_size_that_equals_one_computed_from_itself(load: Load, dim: Any) -> None:
    _, program = exported(load, "return x / torch.cat([x[:1], x[:2]]), y", [(3, 2), (3, 2)], ({0: dim}, None))
    (constraint,) = told(program)
    assert constraint.endswith(" == 3")


@EVEN
def test_a_multiple_of_a_number_is_a_warning_for_a_range_only(load: Load) -> None:
    body, sizes = POOLED.format("x.select(1, 0).reshape(-1, 12)"), [(2, 3, 8, 6), (1,)]
    _, program = exported(load, body, sizes, ({2: "h", 3: "w"}, None))
    assert told(program) == []
    (noted,) = told(program, "OXP1041")
    _, program = exported(load, body, sizes, ({2: Dim("h"), 3: Dim("w")}, None))
    (constraint,) = told(program)
    pooled = [(8, 6), (8, 12), (9, 13), (8, 8), (10, 6)]
    for text in constraint, noted:
        assert [eval(text, {"h": height, "w": width}) for height, width in pooled] == [True, True, True, False, False]


@pytest.mark.parametrize("size", [4, 600])
@pytest.mark.parametrize("shape", [("n", "n"), (Dim.DYNAMIC, Dim.DYNAMIC)])
def test_an_upper_bound_is_a_warning_for_a_range_only(load: Load, size: int, shape: tuple[Any, Any]) -> None:
    body = "mask = torch.ones(1024, 1024).tril()\nreturn x + mask[: x.shape[0], : x.shape[1]]"
    model, program = exported(load, body, [(size, size), (1,)], (shape, None))
    assert told(program) == []
    if RELATES_PARTS:
        assert [each.split()[1:] for each in told(program, "OXP1041")] == [["<=", "1024"]] * (1 if "n" in shape else 2)
    x, y = torch.rand(7, 7), torch.rand(1)
    torch.testing.assert_close(program(x, y)[0], model(x, y))


REQUIRED = {
    "multiple": ("x.view(-1, 2, 5).sum(1)", "{0} % 2 == 0"),
    "largest": ("x + torch.zeros(64, 5)[: x.shape[0]]", "{0} <= 64"),
    "largest of a bound": ("x + torch.zeros(64, 5).narrow(0, 0, x.shape[0])", "{0} <= 64"),
    "two dims": ("x.reshape(y.shape[0], -1).sum(1)", "5*{0} % {1} == 0"),
    "none": ("x[: 2 * (x.shape[0] // 2)].view(-1, 2, 5).sum(1)", ""),
}


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("form", ["names", "DYNAMIC"])
def test_what_a_line_requires_of_a_dim_without_a_range_is_a_note_there(load: Load, name: str, form: str) -> None:
    if name == "largest" and not RELATES_PARTS:
        pytest.skip("torch 2.11 does not relate the size of a part to that of the whole")
    body, constraint = REQUIRED[name]
    x, y = ("n", "m") if form == "names" else (Dim.DYNAMIC, Dim.DYNAMIC)
    _, program = exported(load, f"z = x * 2\nreturn {body}", [(4, 5), (4,)], ({0: x}, {0: y}))
    names = ("n", "m") if form == "names" else ("x.shape[0]", "y.shape[0]")
    assert [each.replace("(", "").replace(")", "") for each in told(program, "OXP1041")] == [constraint.format(*names)] * bool(constraint)
    lines = [each.location and each.location.line for each in program.diagnostics.findings if each.rule.id == "OXP1041"]
    assert lines == [8] * bool(constraint)


@pytest.mark.parametrize(
    ("body", "dim", "constraint"),
    [
        ("x.view(-1, 4, 5).sum(1)", 2 * Dim("half"), "(10*half) % 20 == 0"),
        ("x.view(-1, 2, 5).sum(1)", Dim("less") + 1, "(5*less + 5) % 10 == 0"),
        ("x.view(-1, 2, 5).sum(1)", 2 * Dim("half"), None),
        ("x.view(-1, 2, 5).sum(1)", 2 * Dim("less") + 2, None),
    ],
)
def test_what_a_line_requires_of_a_computed_dim_is_a_warning(load: Load, body: str, dim: Any, constraint: str | None) -> None:
    _, program = exported(load, f"return {body}, y", [(8, 5), (4,)], ({0: dim}, None))
    assert told(program) == [constraint] * (constraint is not None)
    assert told(program, "OXP1041") == []


def test_all_dims_are_static_of_which_an_operator_takes_few_sizes(load: Load) -> None:
    _, program = exported(load, POOLED.format("x.reshape(x.shape[0], 36) @ y.T"), [(2, 3, 8, 6), (5, 36)], True)
    (x, _) = program.model.graph.inputs
    assert x.shape is not None
    assert list(x.shape)[1:] == [3, 8, 6]


@pytest.mark.parametrize(("size", "divisor", "constraint"), [(4, 2, "B >= 4 and B <= 5"), (32, 8, "B >= 32 and B <= 39")])
def test_both_bounds_of_a_dim_that_a_computed_number_needs(load: Load, size: int, divisor: int, constraint: str) -> None:
    body = f"return x.unfold(0, x.shape[0] // {divisor}, 1)"
    _, program = exported(load, body, [(size, 5), (1,)], ({0: Dim("B", min=divisor, max=80)}, None))
    assert told(program) == [constraint]


@pytest.mark.parametrize("other", ["B", Dim.AUTO, Dim.DYNAMIC])
def test_a_dim_of_size_1_that_the_model_stretches(load: Load, other: Any) -> None:
    body, sizes = "return x / (y + 1)", [(3, 3), (1,)]
    for dim in ("A", Dim("A"), Dim.DYNAMIC):
        with pytest.raises(onnxplain.ExportFailed) as failed:
            exported(load, body, sizes, ({1: other}, {0: dim}))
        assert [each.rule.id for each in failed.value.findings] == ["OXP1003"]
    model, program = exported(load, body, sizes, ({1: other}, {0: Dim.AUTO}))
    x, y = torch.rand(3, 5), torch.rand(1)
    torch.testing.assert_close(program(x, y)[0], model(x, y))


@pytest.mark.parametrize(
    ("one", "other", "changed"),
    [
        (Dim("B"), 2 * Dim("U", min=1, max=9), [("B", "2*U")]),
        ("B", 2 * Dim("U", min=1, max=9), [("B", "2*U")]),
        ("B", Dim("U", min=1, max=9), [("U", "B")]),
        (Dim.AUTO, 2 * Dim("U", min=1, max=9), []),
    ],
)
def test_a_name_that_another_dim_replaces(load: Load, one: Any, other: Any, changed: list[tuple[str, str]]) -> None:
    _, program = exported(load, "return x < y", [(4, 3), (4, 3)], ({0: one}, {0: other}))
    findings = [dict(zip(each.rule.arguments(), each.rule.argument_texts(), strict=True)) for each in program.diagnostics.findings]
    assert [(each["asked"], each["given"]) for each in findings] == changed


@pytest.mark.parametrize(
    ("formula", "root", "sizes", "fits"),
    [
        (lambda n: 2 * n, None, (12, 3), True),
        (lambda n: 2 * n, None, (13, 3), False),
        (lambda n: 3 * n - 2, None, (13, 3), True),
        (lambda n: 3 * n - 2, None, (12, 3), False),
        (lambda n: 2 * n, lambda n: n, (12, 6), True),
        (lambda n: 2 * n, lambda n: n, (12, 7), False),
        (lambda n: n - 1, lambda n: n + 1, (5, 7), True),
        (lambda n: n - 1, lambda n: n + 1, (5, 8), False),
    ],
)
def test_an_example_fits_the_formulas_of_its_dims(load: Load, formula: Any, root: Any, sizes: tuple[int, int], fits: bool) -> None:
    n = Dim("n", min=2, max=40)
    shapes = ({0: formula(n)}, None if root is None else {0: root(n)})
    if fits:
        model, program = exported(load, "return x.sum() + y", [(size,) for size in sizes], shapes)
        assert {str(dim) for value in program.model.graph.inputs for dim in value.shape} <= {"n", "n - 1", "n + 1", "2*n", "3*n - 2", "3"}
        x, y = torch.rand(formula(8)), torch.rand(sizes[1] if root is None else root(8))
        torch.testing.assert_close(program(x, y)[0], model(x, y))
    else:
        with pytest.raises(onnxplain.ExportFailed) as failed:
            exported(load, "return x.sum() + y", [(size,) for size in sizes], shapes)
        assert [each.rule.id for each in failed.value.findings] == ["OXP1004"]


def test_a_part_that_has_size_1_in_the_example_is_written_at_any_size(load: Load) -> None:
    model, program = exported(load, "x = x + y\nx.chunk(2, -1)[-1].add_(1)\nreturn x", [(1, 2), (1,)], ({0: Dim.AUTO, 1: Dim.AUTO}, None))
    for size in ((6, 8), (3, 5), (1, 3)):
        x, y = torch.rand(*size), torch.rand(1)
        torch.testing.assert_close(program(x, y)[0], model(x, y))


@pytest.mark.parametrize("strategy", ["non-strict", "strict", "draft"])
def test_a_failed_export_leaves_no_marks_on_the_example(load: Load, strategy: str) -> None:
    x = torch.rand(3, 4)
    torch._dynamo.maybe_mark_dynamic(x, 1)
    before = {name: set(value) if isinstance(value, set) else value for name, value in vars(x).items()}
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(
            load(NET.format("return x + 1 if x.sum() > 0 else y")).Net(),
            (x, x),
            dynamic_shapes=True,
            strategies=(strategy,),
            try_fixes=False,
        )
    assert vars(x) == before


@pytest.mark.parametrize(
    ("body", "constraints"),
    [
        ("rest = x.clone()\nrest.squeeze_()\nreturn x * (1 if rest.shape[-1] > 2 else 0)", {"B >= 3", "B != 1"}),
        ("if x.shape[0] == 1:\n    return x + 7\nreturn x * int(x.shape[0] > 2)", {"B >= 3"}),
        ("rest = x.squeeze()\nif x.shape[0] > 2:\n    return rest + 3\nreturn x", {"B >= 3", "B != 1"}),
    ],
)
def test_a_branch_beside_another_decision_about_the_same_dim(load: Load, body: str, constraints: set[str]) -> None:
    _, program = exported(load, body, [(3,), (1,)], ({0: Dim("B")}, None))
    assert set(told(program)) == constraints


def test_a_squeeze_of_a_size_that_a_branch_asks_about(load: Load) -> None:
    body = "part = x[: x.shape[0] % 3].squeeze()\nif x.shape[0] % 3 == 0:\n    return x\nreturn part * 2"
    _, program = exported(load, body, [(2,), (1,)], ({0: Dim("B", min=2)}, None))
    assert set(told(program)) == {"B % 3 != 0", "B % 3 != 1"}


@pytest.mark.parametrize(
    ("body", "size", "constraints"),
    [
        ("if x.shape[0] % 3 == 1:\n    return x\nreturn x[: x.shape[0] % 3].squeeze()", 2, ["B % 3 != 1"]),
        # With 16, the next smaller size for which the second number is 1, the first one is 1 as well.
        (
            "if x.shape[0] % 3 == 1:\n    return torch.ones(x.shape[0] % 3, x.shape[0] % 5).squeeze()\nreturn x",
            19,
            ["B % 3 == 1", "B % 5 != 1"],
        ),
    ],
)
def test_what_a_branch_asks_about_a_size_is_told_once(load: Load, body: str, size: int, constraints: list[str]) -> None:
    _, program = exported(load, body, [(size,), (1,)], ({0: Dim("B", min=2)}, None))
    assert told(program) == constraints


@pytest.mark.parametrize(
    "body",
    [
        "z = x.squeeze()\nfor row in z:\n    z = z + row\nreturn z",
        "z = x.squeeze()\nreturn torch.cond(z.sum() > 0, lambda a: a + 1, lambda a: a * 2, (z,))",
    ],
    ids=["loop", "branch"],
)
def test_sizes_are_told_before_a_loop_or_branch(load: Load, body: str) -> None:
    _, program = exported(load, body, [(3, 5), (1,)], ({0: "B", 1: "T"}, None))
    assert sorted(told(program)) == ["B != 1", "T != 1"]


def test_the_same_operator_on_tensors_of_other_sizes(load: Load) -> None:
    _, program = exported(load, "return x.squeeze(), y.squeeze()", [(3,), (4, 2)], (("A",), ("B", None)))
    assert told(program) == ["A != 1", "B != 1"]


@pytest.mark.parametrize(
    ("part", "shape", "constraints"),
    [
        ("x[: x.shape[0] % 3].squeeze()", Dim("B", min=2, max=8), ["B % 3 != 1"]),
        ("x[: x.shape[0] % 3].squeeze(0)", Dim("B", min=2, max=3), []),
        ("x[::2].squeeze()", Dim("B", min=2, max=9), ["B > 2"]),
        ("x[::2].squeeze()", Dim("B", min=3, max=9), []),
        ("x[:, None].squeeze(1)", Dim("B"), []),
    ],
)
def test_a_squeeze_of_a_computed_size(load: Load, part: str, shape: Any, constraints: list[str]) -> None:
    model, program = exported(load, f"return {part} * 2", [(2 if shape.max < 9 else 5,), (1,)], ({0: shape}, None))
    assert [each for each in told(program) if each != "B != 1"] == constraints
    for size in range(shape.min, min(shape.max, 8) + 1) if not constraints else ():
        x = torch.rand(size)
        torch.testing.assert_close(program(x, torch.rand(1))[0], model(x, x))


@pytest.mark.parametrize("dim", ["B", Dim("B", min=4)])
def test_a_squeeze_of_two_computed_sizes(load: Load, dim: Any) -> None:
    _, program = exported(load, "return torch.ones(x.shape[0] % 3, x.shape[0] // 4).squeeze() * 2", [(8,), (1,)], ({0: dim}, None))
    (constraint,) = told(program)
    assert [size for size in range(4, 20) if not eval(constraint, {"B": size})] == [4, 5, 6, 7, 10, 13, 16, 19]


@SLICES
@pytest.mark.parametrize(
    ("names", "constraint"),
    [
        (("B", "B"), "B != 1"),
        ((Dim("B"), Dim("B")), "B != 1"),
        (("A", "B"), "min(3, A*B) != 1"),
        ((Dim.AUTO, Dim.AUTO), "min(3, x.shape[0]*x.shape[1]) != 1"),
    ],
)
def test_a_squeeze_of_a_computed_size_that_several_dims_make_1(load: Load, names: Any, constraint: str) -> None:
    model, program = exported(load, "return x.flatten()[:3].squeeze() * 2", [(2, 2), (1,)], (names, None))
    assert told(program) == [constraint]
    x = torch.rand(4, 4)
    torch.testing.assert_close(program(x, torch.rand(1))[0], model(x, x))


def test_a_model_that_is_wrong_for_its_example_is_no_success(load: Load, tmp_path: pathlib.Path) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load, "return x[::2].squeeze() * 2", [(2,), (1,)], ({0: Dim("B", min=2)}, None))
    assert [(each.rule.id, each.location.line) for each in failed.value.findings if each.fails] == [("OXP1011", 7)]


def test_a_squeeze_asks_the_example(load: Load) -> None:
    """torch does not know that the size is 1, and made a program that is wrong for the example."""
    body = "return x.narrow(-1, 0, min(x.shape[0] - 1, x.shape[-1])).squeeze() * 2"
    model, program = exported(load, body, [(5, 5, 1), (1,)], ({0: "B"}, None))
    assert told(program) == ["B != 1"]
    for size in (2, 3, 5):
        x = torch.rand(size, 5, 1)
        torch.testing.assert_close(program(x, torch.rand(1))[0], model(x, x))


@SLICES
def test_an_einsum_of_a_computed_size_that_is_1_in_the_example(load: Load) -> None:
    body = "part = torch.tensor_split(x, (1, 2), -2)[1]\nreturn torch.einsum('...ij,...kj->...ik', part, part)"
    model, program = exported(load, body, [(5, 2), (1,)], (("B", "C"), None))
    assert told(program) == ["B >= 2"]
    x = torch.rand(7, 3)
    torch.testing.assert_close(program(x, torch.rand(1))[0], model(x, x))


def test_roots_of_sizes_that_are_negative_for_others(load: Load) -> None:
    """The search for sizes that a check excludes tries 0 as well, whose root is no number."""
    body = "v = torch.complex(x, x)\nv.t_()\nreturn torch.view_as_real(v * math.sqrt(torch.complex(x, x).size(-2) - 1))"
    _, program = exported(load, f"import math\n{body}", [(5, 3), (1,)], ({0: Dim.AUTO}, None))
    assert {each.rule.id for each in program.diagnostics.findings if each.fails} == set()


def test_a_dim_that_torch_bounds_from_below_only(load: Load) -> None:
    """torch suggests a Dim without an upper bound where the user's has one."""
    body = """
        v = y % (x.abs() + 1)
        w = torch.cat(y.split(3, -2)[::-1], -2).unflatten(1, (3, -1))
        return torch.einsum('...ij,...kj->...ik', w, v)
    """
    dims = ((Dim("B", min=2, max=16), Dim("T", max=12)), (Dim("U", max=12), Dim("V", max=12)))
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load, textwrap.dedent(body).strip(), [(6, 3), (6, 3)], dims)
    assert {each.rule.id for each in failed.value.findings if each.fails} <= {"OXP1003", "OXP1011"}


def test_a_squeeze_whose_computed_size_is_1_in_the_example(load: Load) -> None:
    body = "return x.narrow(0, 0, min(x.shape[1] // 3, x.shape[0])).squeeze()"
    _, program = exported(load, body, [(7, 5), (1,)], ({0: Dim("A"), 1: Dim("B")}, None))
    assert told(program) == ["min(A, B // 3) == 1", "B != 1"]


@pytest.mark.parametrize(
    ("test", "sizes", "constraints"),
    [
        # What belongs together in the example is no coincidence, where a library asks.
        ("x.shape[0] + y.shape[0] <= z.shape[0]", (3, 4, 7), []),
        ("x.shape[0] + y.shape[0] <= z.shape[0]", (3, 4, 8), ["a + b <= c"]),
        ("z.shape[0] >= x.shape[0] + y.shape[0]", (3, 4, 7), []),
        ("x.shape[0] + y.shape[0] > z.shape[0]", (3, 4, 8), ["a + b <= c"]),
        ("x.shape[0] + y.shape[0] < z.shape[0]", (3, 4, 8), ["a + b < c"]),
        ("x.shape[0] + y.shape[0] != z.shape[0]", (3, 4, 8), ["a + b != c"]),
        # Of two sizes, one may be another later.
        ("x.shape[0] <= z.shape[0]", (7, 4, 7), ["a <= c"]),
        ("x.shape[0] <= 7", (7, 4, 7), ["a <= 7"]),
        # Whether a tensor is empty, or has one element.
        ("x.shape[0] > 0", (3, 4, 7), []),
        ("x.shape[0] > 1", (3, 4, 7), []),
        ("x.shape[0] > 2", (3, 4, 7), ["a > 2"]),
    ],
)
def test_a_branch_of_a_library(load: Load, tmp_path: pathlib.Path, test: str, sizes: tuple[int, ...], constraints: list[str]) -> None:
    (tmp_path / "site-packages").mkdir()
    library = load(f"def doubled(x, y, z):\n    return z * 2 if {test} else z * 3\n", "site-packages/library")
    model = load(NET.format("return self.call(x, y, z)").replace("x, y)", "x, y, z)")).Net()
    model.call = library.doubled
    program = onnxplain.export(model, tuple(map(torch.rand, sizes)), dynamic_shapes=[{0: name} for name in "abc"])
    assert told(program) == constraints


@pytest.mark.parametrize(
    ("body", "size", "dim", "constraints"),
    [
        ("return torch.stack([part.sum() for part in x.split(1500)])", 2, "B", ["B <= 1500"]),
        ("return torch.cat([part * 2 for part in x.chunk(2)])", 4, "B", ["B >= 2"]),
        ("return x.view(-1, 4).sum(0).sum() + x.view(-1, 6).mean()", 24, Dim("B"), ["B % 4 == 0"]),
        (
            "rows = y.expand(60).view(x.shape[0], -1)\nreturn x * rows.sum() + y.expand(90).view(x.shape[0], -1).sum()",
            3,
            "B",
            ["60 % B == 0"],
        ),
    ],
)
def test_a_limit_of_one_dim_is_told_once(load: Load, body: str, size: int, dim: Any, constraints: list[str]) -> None:
    _, program = exported(load, body, [(size,), (1,)], ({0: dim}, None))
    assert told(program) == constraints


@pytest.mark.parametrize(
    ("folder", "body", "edits"),
    [
        ("", "y.view(x.shape[0], -1)", ["y.shape[0]"]),
        ("", "torch.reshape(y, (x.shape[0], -1))", []),
        ("site-packages/", "y.view(x.shape[0], -1)", []),
    ],
)
def test_a_view_may_take_the_size_of_its_own_tensor(load: Load, tmp_path: pathlib.Path, folder: str, body: str, edits: list[str]) -> None:
    (tmp_path / "site-packages").mkdir()
    library = load(f"import torch\n\n\ndef rows(x, y):\n    return {body}\n", f"{folder}library")
    model = load(NET.format("return self.rows(x, y).sum() + x")).Net()
    model.rows = library.rows
    program = onnxplain.export(model, (torch.rand(3), torch.rand(12)), dynamic_shapes=({0: "B"}, None))
    assert told(program) == ["12 % B == 0"]
    (finding,) = program.diagnostics.findings
    assert [edit.replacement for fix in finding.fixes for edit in fix.edits] == edits


def test_a_number_in_a_lambda_is_told(load: Load) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load("halves = lambda x: x.view(3, 4) / 2\n").halves, (torch.rand(3, 4),), dynamic_shapes=({0: "B"},))
    assert [each.rule.id for each in failed.value.findings] == ["OXP1003"]


LIBRARY = torch.library.Library("partly", "FRAGMENT")
LIBRARY.define("parts(Tensor x) -> Tensor[]")
LIBRARY.impl("parts", lambda x: [part.clone() for part in (x * 1).split(2)], "CPU")
ONE = torch.ones(())
torch.library.register_fake("partly::parts", lambda x: [part.clone() for part in (x * ONE).split(2)], lib=LIBRARY)


def test_a_fake_kernel_may_use_tensors_with_data(load: Load) -> None:
    _, program = exported(load, "return torch.cat(torch.ops.partly.parts(x)) + 1", [(4,), (1,)], ({0: "B"}, None))
    assert "B >= 3 and B <= 4" in told(program)


@pytest.mark.parametrize("shapes", [({2: Dim.DYNAMIC, 3: Dim.DYNAMIC},), ({2: "H", 3: "W"},), ({2: Dim("H"), 3: Dim("W")},), True])
@pytest.mark.falls_back
def test_relations_that_the_solver_of_torch_cannot_solve(shapes: Any) -> None:
    class Steps(torch.nn.Module):
        """Halves its input in two ways, whose sizes are equal for some sizes only."""

        def __init__(self) -> None:
            super().__init__()
            self.steps = torch.nn.ModuleList(torch.nn.Conv2d(3, 3, 3, 2, 1) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second, third = self.steps
            y = first(x)
            pooled = torch.nn.functional.max_pool2d(y, 2, 2)
            return torch.nn.functional.max_pool2d(pooled + second(y), 2, 2) + third(second(y))

    model = Steps()
    program = onnxplain.export(model, (torch.randn(2, 3, 64, 64),), dynamic_shapes=shapes)
    x = torch.randn(2, 3, 96, 128)
    torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "size", "constraints"),
    [
        pytest.param("first, *rest = x[1:3]\nreturn first + len(rest)", (4, 3), ["B >= 3"], marks=ROWS),
        ("part = x.split(x.shape[1], 0)[0]\nflat = part.flatten()\nreturn part + part.shape[0]", (3, 1), ["T <= 3"]),
        ("whole = x.to(torch.int64).unique_consecutive()\nreturn x + (whole < x) * min(whole.size(0), 4)", (4, 1), []),
    ],
)
@pytest.mark.falls_back
def test_the_number_of_parts_is_told(load: Load, body: str, size: tuple[int, int], constraints: list[str]) -> None:
    dims = ({0: Dim("B")}, None) if constraints == ["B >= 3"] else ({1: Dim("T")}, None)
    _, program = exported(load, body, [size, size], dims)
    assert told(program) == constraints


@pytest.mark.parametrize("size", [1, 3, 4])
def test_a_size_that_is_compared_is_computed(load: Load, size: int) -> None:
    model, program = exported(load, "return x + int(x.shape[1] == 2)", [(5, size), (1, 1)], ({0: Dim("B"), 1: Dim("T")}, None))
    for other in (1, 2, 3, 5):
        x = torch.rand(2, other)
        torch.testing.assert_close(program(x, torch.rand(1, 1))[0], model(x, None))


@needs_columns
def test_a_dim_that_follows_from_another_one_gets_an_entry(load: Load) -> None:
    body = "return torch.nn.functional.cross_entropy(x.unsqueeze(-1).expand(-1, -1, 9)[:, :-1].flatten(0, 1), y.long().flatten())"
    model, program = exported(load, body, [(2, 5), (2, 4)], ({0: "B", 1: "T"}, {0: "B", 1: "short"}))
    (finding,) = [each for each in program.diagnostics.findings if each.rule.id == "OXP1011"]
    assert finding.fixes[0].confidence is onnxplain.diagnostics.Confidence.SAFE
    (edit,) = finding.fixes[0].edits
    assert 'torch.export.Dim("short") + 1' in edit.replacement
    # NOTE: for torch, the name S is no symbol.
    _, unnameable = exported(load, body, [(2, 5), (2, 4)], ({0: "B", 1: "T"}, {0: "B", 1: "S"}))
    assert len(told(unnameable)) == 1
    length, batch = Dim("short"), Dim("B")
    _, stated = exported(load, body, [(2, 5), (2, 4)], ({0: batch, 1: length + 1}, {0: batch, 1: length}))
    assert told(stated) == []
    x, y = torch.rand(3, 8), torch.rand(3, 7)
    torch.testing.assert_close(stated(x, y)[0], model(x, y))


def test_what_another_line_fixes_is_told_once(load: Load) -> None:
    body = "x = x.view(4, -1)\nreturn torch.nn.functional.linear(x, torch.ones(2, 8)) + y.sum()"
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load, body, [(4, 8), (2,)], ({0: "B"}, None))
    (finding,) = failed.value.log.findings
    assert (finding.rule.id, finding.location.line) == ("OXP1003", 8)
    assert [frame.line for frame in finding.stack[-1:]] == [8]


def test_dims_that_a_rewritten_copy_fixes_are_notes(load: Load) -> None:
    body = "if x.max() > 9:\n    x = x / x.max()\nreturn x.view(4, 3) * y"
    _, program = exported(load, body, [(4, 3), (4, 3)], True)
    assert "OXP1037" in {each.rule.id for each in program.diagnostics.findings}
    assert "OXP1034" in {each.rule.id for each in program.diagnostics.findings}


def test_a_dim_that_becomes_another_one_is_told(load: Load) -> None:
    body = "whole = sum(x.chunk(1, 0))\nreturn x / ((x @ x.mT).abs() + 1) + whole"
    _, program = exported(load, body, [(3, 3), (1,)], ({0: Dim("B"), 1: Dim("T")}, None))
    assert told(program) == ["T == B"]


def test_what_an_operator_refuses_for_the_example_is_caught(load: Load) -> None:
    body = "y = x.flatten()\ntry:\n    return y.view(x.shape[0] + 1)\nexcept RuntimeError:\n    return y * 2"
    model, program = exported(load, body, [(4, 3), (1,)], ({0: "B"}, None))
    x = torch.rand(4, 3)
    torch.testing.assert_close(program(x, torch.rand(1))[0], model(x, None))


@pytest.mark.parametrize("body", ["return (x * 2).view(4, 10)", "return x.narrow(0, 0, 3)"])
def test_where_the_example_fails_no_dim_is_told(load: Load, body: str) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load, body, [(2, 10), (2,)], ({0: Dim("B"), 1: Dim("T")}, None))
    assert [(each.rule.id, each.location.line) for each in failed.value.log.findings] == [("OXP1005", 7)]


def test_dims_of_one_name_have_one_size_in_computed_sizes(load: Load) -> None:
    chunks = "x, y = (torch.nn.functional.pad(each, (0, 0, 0, -each.shape[1] % 4)) for each in (x, y))"
    body = f"{chunks}\nx, y = (each.reshape(each.shape[0], -1, 4, 6) for each in (x, y))\nreturn x @ y.transpose(-1, -2)"
    model, program = exported(load, body, [(2, 10, 6), (2, 10, 6)], ({0: "B", 1: "T"}, {0: "B", 1: "T"}))
    assert told(program) == []
    for shape in ((3, 8, 6), (1, 3, 6), (2, 1, 6)):
        x, y = torch.rand(shape), torch.rand(shape)
        torch.testing.assert_close(program(x, y)[0], model(x, y))


PATCHES = """
    import math
    import torch
    import torch.nn.functional as F


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Sequential(*(torch.nn.Conv2d(4, 4, 3, stride=2, padding=1) for _ in range(2)))
            self.linear, self.norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)

        def attended(self, x):
            q = self.linear(x).view(*x.shape[:-1], -1, 2).transpose(1, 2)
            y = (torch.matmul(q, q.transpose(-1, -2)).softmax(-1) @ q).permute(0, 2, 1, 3).contiguous()
            return y.view(*y.size()[:-2], 4)

        def forward(self, x):
            x = self.conv(x)
            batch, channels, height, width = x.shape
            h, w = int(math.ceil(height / 2) * 2), int(math.ceil(width / 2) * 2)
            x = F.interpolate(x, size=(h, w), mode="bilinear", align_corners=False)
            patches = (h // 2) * (w // 2)
            x = x.reshape(batch * channels * (h // 2), 2, w // 2, 2).transpose(1, 2)
            x = x.reshape(batch, channels, patches, 4).transpose(1, 3).reshape(batch * 4, patches, -1)
            x = self.norm(x + self.attended(x))  # HERE
            x = self.attended(x)
            return x.contiguous().view(batch, 4, patches, -1)
"""


@pytest.mark.parametrize(("size", "tries", "expected"), [(8, False, ["OXP1011"]), (8, True, []), (16, False, [])])
def test_a_computed_size_that_is_1_in_the_example_for_good(size: int, tries: bool, expected: list[str], load: Load, marked: Any) -> None:
    model = load(PATCHES).Net().eval()
    shapes = ({0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC},)
    program = onnxplain.export(model, (torch.randn(2, 4, size, size),), dynamic_shapes=shapes, try_fixes=tries)
    # NOTE: torch 2.11 takes it for 1 at further lines.
    assert {each.rule.id for each in program.diagnostics.findings} == set(expected)
    assert {each.location.line for each in program.diagnostics.findings if each.location} >= set(marked("HERE") * len(expected))
    if not expected:
        for sizes in ((2, 4, 8, 8), (3, 4, 13, 21), (1, 4, 40, 8)):
            x = torch.randn(sizes)
            torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


class Differences(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        second = x.diff(2, 0)
        return second, torch.full((2,), second.shape[0])


@pytest.mark.parametrize(("dim", "expected"), [(Dim.DYNAMIC, ["OXP1011"]), (Dim("n", min=2), [])])
def test_a_limit_that_excludes_size_one_alone(dim: Any, expected: list[str]) -> None:
    """For a single row, torch's graph has -1 rows of second differences."""
    program = onnxplain.export(Differences(), (torch.randn(5, 3),), dynamic_shapes={"x": {0: dim}})
    assert [each.rule.id for each in program.diagnostics.findings] == expected
    for rows in (2, 3, 6):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(list(program(x)), list(Differences()(x)))
