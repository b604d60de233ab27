"""`verify=True` with dynamic dims: the outputs are compared at other sizes as well."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from onnxscript import opset20 as op
from torch.export import Dim

import onnxplain
from onnxplain import ExportFailed
from onnxplain.testing import assert_exports


class Seen(torch.nn.Module):
    """Notes the sizes of its inputs in eager mode."""

    def __init__(self) -> None:
        super().__init__()
        # NOTE: a verification puts back what a list or set of the model itself holds.
        self.seen = types.SimpleNamespace(sizes=set())

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            self.seen.sizes.add((*x.shape, *y.shape))
        return x @ y


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[: y.shape[0]] + y


class Pooled(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ y


class Apart(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.mean(0).remainder(-2.5) + (2 ** y.abs()).mean(0)


class Longer(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        torch._check(x.shape[0] > y.shape[0])
        return x.sum(0) + y.sum(0)


class Fourths(torch.nn.Module):
    """Takes numbers of rows that four divides."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y).flip(x.shape[0] % 4)


HALF, FROM_TWO = Dim("half", min=1, max=9), Dim("n", min=2)
MADE = {
    "names": (Seen, (3, 4), (4, 5), {"x": {0: "b", 1: "k"}, "y": {0: "k", 1: "n"}}, [{"b": 4, "k": 6, "n": 8}, {"b": 1, "k": 1, "n": 1}]),
    "range": (Seen, (3, 4), (4, 5), {"x": {0: Dim("b", min=3, max=4)}, "y": None}, [{"b": 4}]),
    "least": (Seen, (4, 4), (4, 5), {"x": {0: Dim("b", min=3, max=4)}, "y": None}, [{"b": 3}]),
    "derived": (Halves, (6,), (3,), {"x": {0: 2 * HALF}, "y": {0: HALF}}, [{"half": 4}, {"half": 1}]),
    "one more": (Pooled, (3, 4), (4, 5), {"x": {0: HALF + 1}, "y": None}, [{"half": 3}]),
    "difference": (Longer, (4, 4), (3, 4), {"x": {0: "n"}, "y": {0: "m"}}, [{"n": 5, "m": 4}, {"n": 3, "m": 2}]),
    "half": (Fourths, (8, 3), (8, 3), {"x": {0: FROM_TWO}, "y": {0: FROM_TWO}}, [{"n": 16}, {"n": 4}]),
    "one name": (Apart, (3, 4), (3, 4), {"x": {0: "b", 1: "k"}, "y": {0: "b", 1: "k"}}, [{"b": 4, "k": 6}, {"b": 1, "k": 1}]),
    "refused": (Pooled, (2, 3, 4), (12, 2), {"x": {0: "b", 1: "h", 2: "w"}, "y": None}, []),
    "static": (Seen, (3, 4), (4, 5), None, []),
    "empty": (Seen, (0, 4), (4, 5), None, []),
    "hints": (Seen, (3, 4), (4, 5), {"x": {0: Dim.DYNAMIC(min=2, max=3)}, "y": None}, [{"x_dim_0": 2}]),
}


@pytest.mark.parametrize(("model", "x", "y", "shapes", "sizes"), MADE.values(), ids=MADE)
def test_the_sizes(model: type[torch.nn.Module], x: tuple[int, ...], y: tuple[int, ...], shapes: Any, sizes: list[dict[str, int]]) -> None:
    made = model()
    inputs = torch.rand(*x), torch.rand(*y)
    program = onnxplain.export(made, inputs, dynamic_shapes=shapes, verify=True)
    assert program.verification is not None
    assert [dict(each) for each in program.verification.sizes] == sizes
    (output,) = program.verification.outputs
    assert output.absolute is not None
    assert output.absolute < 1e-5
    if isinstance(made, Seen):
        b, k, n = x[0], x[1], y[1]
        others = {(each.get("b", each.get("x_dim_0", b)), each.get("k", k), each.get("k", k), each.get("n", n)) for each in sizes}
        assert made.seen.sizes == {(*x, *y)} | others


class Bounded(Apart):
    """The second input has a narrower range than the first."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        torch._check(y.shape[0] >= 3)
        torch._check(y.shape[0] <= 10)
        return super().forward(x, y)


def test_dims_of_one_name_have_the_narrowest_range() -> None:
    program = onnxplain.export(
        Bounded(), (torch.rand(10, 4), torch.rand(10, 4)), dynamic_shapes={"x": {0: "b"}, "y": {0: "b"}}, verify=True
    )
    assert program.verification is not None
    assert (program.verification.sizes, program.verification.refused) == (({"b": 3},), ())


def compared(sizes: Any, model: Any = None) -> onnxplain.ONNXProgram:
    shapes = ({0: Dim("b", max=20)}, {1: "n"})
    inputs = torch.rand(3, 4), torch.rand(4, 5)
    return onnxplain.export(torch.matmul if model is None else model, inputs, dynamic_shapes=shapes, verify=True, verify_sizes=sizes)


def test_as_many_sizes_as_asked_for() -> None:
    sizes = {}
    for count in (0, 1, 3, 6):
        program = compared(count)
        assert program.diagnostics.findings == ()
        assert program.verification is not None
        sizes[count] = [dict(each) for each in program.verification.sizes]
        assert len(sizes[count]) == count
    assert sizes[1] == [{"b": 4, "n": 7}]
    assert sizes[6][:3] == sizes[3]
    assert len({tuple(each.items()) for each in sizes[6]}) == 6
    assert all(1 <= each["b"] <= 20 for each in sizes[6])


def test_the_sizes_that_are_asked_for() -> None:
    seen = Seen()
    program = compared([{"b": 17, "n": 2}, {"n": 9}], seen)
    assert program.verification is not None
    assert program.verification.sizes == ({"b": 17, "n": 2}, {"b": 3, "n": 9})
    assert seen.seen.sizes == {(3, 4, 4, 5), (17, 4, 4, 2), (3, 4, 4, 9)}


@pytest.mark.parametrize("sizes", [{"batch": 3}, {"b": 21}, {"b": 4, "k": 4}])
def test_sizes_that_the_model_does_not_take(sizes: dict[str, int]) -> None:
    program = compared([sizes, {"b": 5}])
    (finding,) = program.diagnostics.findings
    assert finding.rule.id == "OXP6014"
    assert finding.location is not None
    assert finding.location.file.endswith("test_other_sizes.py")
    assert program.verification is not None
    assert (program.verification.sizes, program.verification.refused) == (({"b": 5, "n": 5},), (sizes,))
    with pytest.raises(AssertionError, match="OXP6014"):
        assert_exports(torch.nn.Linear(4, 2), (torch.rand(3, 4),), dynamic_shapes=({0: "b"},), verify_sizes=[sizes | {"a": 1}])


def test_sizes_that_are_refused_are_told() -> None:
    program = onnxplain.export(
        Pooled(), (torch.rand(2, 3, 4), torch.rand(12, 2)), dynamic_shapes={"x": {0: "b", 1: "h", 2: "w"}, "y": None}, verify=True
    )
    assert program.verification is not None
    assert program.verification.sizes == ()
    assert {frozenset(each) for each in program.verification.refused} == {frozenset({"b", "h", "w"})}


@pytest.mark.parametrize("sizes", [-1, True, None, "b=3", {"b": 3}, [3], [{"b": 1.5}], [{"b": -1}], [{3: 3}]], ids=str)
def test_sizes_of_another_kind(sizes: Any) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match="verify_sizes"):
        compared(sizes)


def test_inputs_that_share_a_name_share_their_sizes() -> None:
    def apart(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.remainder(-2.5), 2 ** y.abs()

    # NOTE: ONNX Runtime gives one buffer to values whose dims have one name.
    program = onnxplain.export(apart, (torch.randn(20), torch.arange(20)), dynamic_shapes=({0: "n"}, {0: "n"}), verify=True)
    assert program.diagnostics.findings == ()
    assert program.verification is not None
    assert [dict(each) for each in program.verification.sizes] == [{"n": 21}, {"n": 1}]


def cut(x: Any) -> Any:
    """A translation of `relu` that is right for up to 3 rows."""
    return op.Slice(op.Relu(x), op.Constant(value_ints=[0]), op.Constant(value_ints=[3]), op.Constant(value_ints=[0]))


def fixed(x: Any) -> Any:
    """A translation of `relu` that is right for 3 rows only; ONNX Runtime refuses others."""
    return op.Reshape(op.Relu(x), op.Constant(value_ints=[3, 4]))


@pytest.mark.parametrize(("wrong", "rule"), [(cut, "OXP6008"), (fixed, "OXP6001")])
def test_a_difference_at_another_size_only(wrong: Callable[..., Any], rule: str) -> None:
    table = {torch.ops.aten.relu.default: wrong}
    x = torch.rand(3, 4)
    onnxplain.export(torch.relu, (x,), custom_translation_table=table, verify=True)
    with pytest.raises(ExportFailed) as failed:
        onnxplain.export(torch.relu, (x,), dynamic_shapes=({0: "rows"},), custom_translation_table=table, verify=True)
    (finding,) = failed.value.findings
    assert finding.rule.id == rule
    assert any("rows = 4" in note for note in finding.notes)


@torch.library.custom_op("onnxplain_tests::halves", mutates_args=())
def halves(x: torch.Tensor) -> torch.Tensor:
    """x / 2. Its fake kernel refuses an odd number of rows, which no finding tells, since such an operator usually does so as well."""
    return x / 2


@halves.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x.view(-1, 2, x.shape[1])).view(x.shape)


def test_sizes_that_the_program_refuses_and_the_model_takes() -> None:
    def right(x: Any) -> Any:
        return op.Div(x, op.Constant(value_float=2.0))

    def wrong(x: Any) -> Any:
        """Right for an even number of rows."""
        odd = op.Mod(op.Shape(x, start=0, end=1), op.Constant(value_ints=[2]))
        return op.Add(right(x), op.Cast(odd, to=1))

    x, options = torch.rand(4, 3), {"dynamic_shapes": ({0: "rows"},), "verify": True}
    for table in ({torch.ops.onnxplain_tests.halves.default: each} for each in (right, wrong)):
        onnxplain.export(halves, (x,), custom_translation_table=table, verify=True)
    program = onnxplain.export(halves, (x,), custom_translation_table={torch.ops.onnxplain_tests.halves.default: right}, **options)
    assert program.verification is not None
    assert program.verification.sizes[0] == {"rows": 5}
    with pytest.raises(ExportFailed) as failed:
        onnxplain.export(halves, (x,), custom_translation_table=table, **options)
    assert {finding.rule.id for finding in failed.value.findings if finding.fails} == {"OXP6008"}


def test_sizes_that_a_finding_excludes_are_not_compared() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.flip(x.shape[0] % 2)

    for options in (onnxplain.DiagnosticOptions(), onnxplain.DiagnosticOptions(ignore=("OXP1011",))):
        program = onnxplain.export(model, (torch.rand(4, 4),), dynamic_shapes=({0: "rows"},), verify=True, diagnostic_options=options)
        assert program.verification is not None
        assert program.verification.sizes == ({"rows": 6}, {"rows": 2})
        assert any("rows = 5" in event.text for event in program.diagnostics.events)


def test_values_of_the_example_are_repeated() -> None:
    class Lookup(torch.nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.eye(10)[x] * mask[..., None]

    x, mask = torch.tensor([[9, 0, 3]]), torch.tensor([[True, False, True]])
    shapes = {"x": {0: "b", 1: "s"}, "mask": {0: "b", 1: "s"}}
    program = onnxplain.export(Lookup(), (x, mask), dynamic_shapes=shapes, verify=True)
    assert program.verification is not None
    assert program.verification.sizes == ({"b": 2, "s": 5}, {"b": 1, "s": 1})


def test_dims_of_all_inputs() -> None:
    model = torch.nn.Linear(4, 2)
    program = onnxplain.export(model, (torch.rand(3, 4),), dynamic_shapes=True, verify=True)
    assert program.verification is not None
    assert [list(each.values()) for each in program.verification.sizes] == [[4], [1]]


OFFSETS = {
    "starts": (lambda rows, i, o: torch.nn.functional.embedding_bag(i, rows, o, mode="mean", padding_idx=0), [0, 3, 3, 6]),
    "with the end": (lambda rows, i, o: torch.nn.functional.embedding_bag(i, rows, o, mode="mean", include_last_offset=True), [0, 3, 3, 8]),
    "lengths": (lambda rows, i, o: rows[i].repeat_interleave(2, 0).sum() + (o[1:] - o[:-1]).sqrt(), [0, 1, 1, 8]),
    "one length": (lambda rows, i, o: rows[i].repeat_interleave(2, 0).sum() + (o[1:] - o[:-1]).sqrt(), [0, 8]),
}


@pytest.mark.parametrize(("function", "offsets"), OFFSETS.values(), ids=OFFSETS)
def test_offsets_of_other_sizes_rise_to_the_same_end(function: Callable[..., Any], offsets: list[int]) -> None:
    seen: list[tuple[int, list[int]]] = []

    class Bags(torch.nn.Module):
        def forward(self, rows: torch.Tensor, i: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_exporting():
                seen.append((len(i), o.tolist()))
            result: torch.Tensor = function(rows, i, o)
            return result

    model = Bags()
    inputs = torch.randn(20, 4), torch.randint(20, (8,)), torch.tensor(offsets)
    program = onnxplain.export(model, inputs, dynamic_shapes=(None, {0: "n"}, {0: "o"}), verify=True)
    assert {each.rule.id for each in program.diagnostics.findings} == {"OXP1021"}
    assert program.verification is not None
    assert len(program.verification.sizes) == 2
    assert len(seen) > 1
    for size, each in seen:
        assert each == sorted(each)
        assert each[-1] == size or offsets[-1] != 8


class Counts(torch.nn.Module):
    """Writes to a buffer and to a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        self.norm(x)
        with torch.no_grad():
            self.weight.mul_(2)
        return x * self.count * self.weight - self.norm.running_mean


@pytest.mark.parametrize("shapes", [None, ({0: "batch"},)])
def test_what_a_model_writes_is_as_before(shapes: Any) -> None:
    model = Counts()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        log = onnxplain.export(model, (torch.rand(2, 3),), dynamic_shapes=shapes, verify=True).diagnostics
    except ExportFailed as failed:
        log = failed.log
    assert not [finding for finding in log.findings if finding.rule.id.startswith("OXP6")]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
