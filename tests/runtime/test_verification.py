"""`verify=True`: which differences count, their size, their first node, and outputs that are not compared."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from marks import needs_runtime
from onnxscript import opset20 as op

import onnxplain
from onnxplain import ExportFailed, ONNXProgram
from onnxplain.diagnostics import Diagnostic, Log
from onnxplain.testing import assert_exports

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


def verified(model: Any, args: tuple[Any, ...], table: dict[Any, Callable[..., Any]] | None = None, **options: Any) -> Log:
    """The log of an export that is verified."""
    try:
        return onnxplain.export(model, args, custom_translation_table=table, verify=True, **options).diagnostics
    except ExportFailed as failed:
        return failed.log


def differences(log: Log) -> list[Diagnostic]:
    return [finding for finding in log.findings if finding.rule.id in ("OXP6002", "OXP6008")]


def shifted(by: float) -> dict[Any, Callable[..., Any]]:
    """A translation of `abs` whose result is wrong by a constant."""
    return {torch.ops.aten.abs.default: lambda x: op.Add(op.Abs(x), op.CastLike(op.Constant(value_float=by), x))}


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-7), (torch.float32, 1e-4), (torch.float16, 1e-2), (torch.int32, 0.0), (torch.int64, 0.0)]
)
def test_the_tolerance_depends_on_the_dtype(dtype: torch.dtype, tolerance: float) -> None:
    args = (torch.zeros(3, dtype=dtype),)
    allowed, refused = (tolerance * 0.9, tolerance * 1.2) if tolerance else (0.0, 1.0)
    assert not differences(verified(torch.abs, args, shifted(allowed)))
    (finding,) = differences(verified(torch.abs, args, shifted(refused)))
    assert finding.rule.tolerance == tolerance  # type: ignore[attr-defined]
    assert finding.rule.difference == pytest.approx(refused, rel=1e-2)  # type: ignore[attr-defined]


def test_the_tolerance_of_bfloat16() -> None:
    def shift(x: Any, by: float) -> Any:
        return op.Cast(op.Add(op.Cast(x, to=1), op.Constant(value_float=by)), to=16)

    args = (torch.zeros(3, dtype=torch.bfloat16),)
    for by, count in ((0.045, 0), (0.06, 1)):
        found = differences(verified(torch.abs, args, {torch.ops.aten.abs.default: lambda x, by=by: shift(x, by)}))
        assert [finding.rule.tolerance for finding in found] == [5e-2] * count  # type: ignore[attr-defined]


def test_inputs_may_be_results_of_computations_with_gradients() -> None:
    computed = torch.ones(3, requires_grad=True) * 2
    (finding,) = verified(torch.abs, (computed,), shifted(0.5)).findings
    assert (finding.rule.id, finding.rule.difference) == ("OXP6008", pytest.approx(0.5 / 3))  # type: ignore[attr-defined]


def test_a_comparison_leaves_the_model_as_it_is() -> None:
    options = onnxplain.DiagnosticOptions(levels={"OXP6008": onnxplain.Level.WARNING})
    table = shifted(0.5)
    program = onnxplain.export(
        lambda x: (x.abs().sin(), x.abs() * 2), (torch.ones(3),), custom_translation_table=table, verify=True, diagnostic_options=options
    )
    (finding,) = differences(program.diagnostics)
    assert len(finding.rule.outputs) == 2  # type: ignore[attr-defined]
    assert len(program(torch.ones(3))) == 2


def test_the_largest_difference_is_recorded() -> None:
    log = verified(lambda x: (x + 1, x.abs(), x * 2), (torch.zeros(3),), shifted(2e-5))
    (text,) = (event.text for event in log.events if event.stage == "verify" and "3 outputs" in event.text)
    assert "2e-05 (relative" in text


@pytest.mark.parametrize(("value", "difference"), [(0.0, 0.5), (1.0, 0.25), (-3.0, 0.125)])
def test_the_difference_is_relative_to_large_values(value: float, difference: float) -> None:
    (finding,) = differences(verified(torch.abs, (torch.tensor([7.0, value]) if value else torch.zeros(2),), shifted(0.5)))
    assert finding.rule.difference == pytest.approx(difference)  # type: ignore[attr-defined]


INF, NAN = math.inf, math.nan
EQUAL: dict[str, tuple[list[float], bool]] = {
    "infinite": ([INF, 1.0], True),
    "negative infinite": ([-INF, 1.0], True),
    "not a number": ([NAN, 1.0], True),
}


@pytest.mark.parametrize(("values", "equal"), EQUAL.values(), ids=EQUAL)
def test_equal_values_that_are_no_numbers(values: list[float], equal: bool) -> None:
    assert (not differences(verified(torch.abs, (torch.tensor(values),)))) == equal


WRONG: dict[str, Callable[..., Any]] = {
    "not a number": lambda x: op.Sqrt(op.Neg(op.Add(op.Abs(x), op.CastLike(op.Constant(value_float=1.0), x)))),
    "infinite": lambda x: op.Div(op.Abs(x), op.CastLike(op.Constant(value_float=0.0), x)),
}


@pytest.mark.parametrize("translation", WRONG.values(), ids=WRONG)
def test_values_that_are_no_numbers_are_infinitely_far_from_numbers(translation: Callable[..., Any]) -> None:
    (finding,) = differences(verified(torch.abs, (torch.ones(3),), {torch.ops.aten.abs.default: translation}))
    assert finding.rule.difference == INF  # type: ignore[attr-defined]


def test_no_elements_are_equal() -> None:
    log = verified(torch.abs, (torch.ones(0, 3),))
    assert {finding.rule.id for finding in log.findings} == {"OXP4002", "OXP4004"}, "the output is a constant, and the input has no use"


def test_complex_outputs_are_compared_as_pairs() -> None:
    x = torch.complex(torch.randn(3), torch.randn(3))
    assert not differences(verified(lambda x: x.conj() * 2, (x,)))
    (finding,) = differences(verified(lambda x: torch.view_as_complex(torch.view_as_real(x).abs()), (x,), shifted(0.5)))
    assert finding.rule.tolerance == 1e-4  # type: ignore[attr-defined]


STEPS = """
    import torch

    def step(x):
        return x.abs()  # wrong

    class Net(torch.nn.Module):
        def forward(self, x):
            y = torch.sin(x)
            z = step(y)
            return torch.sin(z), z * 2, y
"""


def test_the_finding_is_at_the_first_line_that_differs(load: Load, marked: Marked) -> None:
    found = differences(verified(load(STEPS).Net(), (torch.ones(3),), shifted(0.5), output_names=["a", "b", "c"]))
    assert [(each.rule.outputs, each.location and each.location.line) for each in found] == [  # type: ignore[attr-defined]
        (("a", "b"), *marked("wrong")),
    ]


def test_later_values_are_compared_with_what_was_not_overwritten(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                y[0] = 7.0
                return (y + 1).abs()  # wrong
    """
    (finding,) = differences(verified(load(source).Net(), (torch.ones(3),), shifted(0.5)))
    assert finding.location is not None
    assert finding.location.line == marked("wrong")[0]


def test_the_model_may_write_to_its_inputs() -> None:
    class Writer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1) * 2

    x = torch.ones(3)
    assert not differences(verified(Writer(), (x,)))
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_constants_and_missing_outputs_are_left_out() -> None:
    class Mixed(torch.nn.Module):
        def forward(self, x: torch.Tensor, scale: float) -> tuple[Any, ...]:
            return x * scale, None, "text", 3, {"sum": x.sum()}

    log = verified(Mixed(), (torch.ones(3), 2.0))
    assert not differences(log)
    assert any(event.text.startswith("3 outputs were compared") for event in log.events)


def test_what_changes_by_itself_is_not_compared() -> None:
    class Clock(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + time.perf_counter_ns() % 1000

    class Draws(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.rand(3)

    for model in (Clock(), Draws()):
        log = verified(model, (torch.ones(3),))
        assert not differences(log)
        (finding,) = (each for each in log.findings if each.rule.id == "OXP6006")
        assert finding.location is not None
        assert (
            "perf_counter_ns" in finding.location.snippet
            or "torch.rand" in finding.location.snippet
            or "class Clock" in finding.location.snippet
        )


def test_outputs_without_a_number_are_not_compared() -> None:
    log = verified(
        lambda x: (x.log(), x / 0, x * 2, x[:0], x.int()), (-torch.ones(3),), output_names=["nan", "inf", "number", "empty", "int"]
    )
    (finding,) = (each for each in log.findings if each.rule.id == "OXP6006")
    assert finding.rule.outputs == ("nan", "inf")  # type: ignore[attr-defined]


def test_another_seed_may_draw_the_same() -> None:
    class Coin(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * float(random.random() < 0.5)

    rules = []
    for seed in range(4):
        random.seed(seed)
        log = verified(Coin(), (torch.ones(3),))
        assert not differences(log)
        rules += [finding.rule.id for finding in log.findings]
    assert "OXP6006" in rules


class Child(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.numbers = itertools.count(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.total + self.weight


class Keeps(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.child, self.kind = Child(), kind

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.child(x)
        if self.kind == "buffer of another":
            self.child.total = self.child.total + 1
        elif self.kind == "data of a weight":
            self.child.weight.data.add_(1)
        elif self.kind == "iterator":
            y = y * next(self.child.numbers)
        return y, x * 2


@pytest.mark.parametrize("kind", ["buffer of another", "data of a weight", "iterator"])
def test_a_second_run_tells_of_state(kind: str) -> None:
    log = verified(Keeps(kind), (torch.ones(3),), output_names=["kept", "plain"])
    (finding,) = (each for each in log.findings if each.rule.id == "OXP6015")
    assert finding.rule.outputs == ("kept",)  # type: ignore[attr-defined]
    assert finding.location is not None
    assert "def forward" in finding.location.snippet


def test_outputs_that_are_buffers_are_compared() -> None:
    class Returns(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("last", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last.copy_(x)
            return self.last

    assert {each.rule.id for each in verified(Returns(), (torch.ones(3),)).findings} == {"OXP2003"}


def test_a_second_run_of_a_healthy_model_tells_nothing() -> None:
    assert verified(Keeps("nothing"), (torch.ones(3),)).findings == ()


def test_a_second_run_that_fails_tells_of_state() -> None:
    class Once(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left = iter(range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            next(self.left)
            return x + 1

    assert "OXP6015" in {each.rule.id for each in verified(Once(), (torch.ones(3),)).findings}


_TURNS = itertools.count()


@torch.library.custom_op("onnxplain_tests::a_least", mutates_args=())
def a_least(x: torch.Tensor) -> torch.Tensor:
    """The position of a least element: of equal ones another one in each run, as kernels of GPUs choose."""
    least = (x == x.min()).nonzero()
    return least[next(_TURNS) % len(least)]


@a_least.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(1, dtype=torch.int64)


def test_an_operator_that_chooses_anew_in_each_run_keeps_no_state() -> None:
    def first(x: Any) -> Any:
        return op.Reshape(op.ArgMin(x, axis=0, keepdims=0), op.Constant(value_ints=[1]))

    table = {torch.ops.onnxplain_tests.a_least.default: first}
    program = onnxplain.export(lambda x: a_least(x), (torch.zeros(2),), custom_translation_table=table, verify=True)
    assert {each.rule.id for each in program.diagnostics.findings} <= {"OXP6006"}


def test_verification_leaves_the_attributes_of_the_model() -> None:
    class Counts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.seen, self.known = 0, [1], {"a": 1}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.seen.append(2)
            self.known["a"] += 1
            return x * self.calls

    model = Counts()
    assert {each.rule.id for each in verified(model, (torch.ones(3),)).findings} == {"OXP1018"}
    assert (model.calls, model.seen, model.known) == (0, [1], {"a": 1})


class Mixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        noise = torch.rand(3)
        looped = torch.cond(x.sum() > 0, lambda y: y + torch.rand(3), lambda y: y - 1, (x,))
        return x.sin(), noise + 1, looped * 2, x + 0 * noise, x.sum()


class Branches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.early, self.late = (
            torch.nn.Linear(3, 2),
            torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, self.early, self.late, (x,))  # type: ignore[no-any-return]


def test_branches_with_weights_that_need_gradients() -> None:
    model = Branches().eval()
    program = assert_exports(model, (torch.ones(4, 3),))
    assert not program.diagnostics.findings
    (result,) = program(-torch.ones(4, 3))
    torch.testing.assert_close(result, model(-torch.ones(4, 3)).detach())


def test_outputs_without_random_numbers_are_compared() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    program = onnxplain.export(Mixed(), (x,), verify=True, output_names=["a", "b", "c", "d", "e"])
    (finding,) = (each for each in program.diagnostics.findings if each.rule.id == "OXP6006")
    assert finding.rule.outputs == ("b", "c", "d")  # type: ignore[attr-defined]
    assert finding.location is not None
    assert finding.location.snippet.strip() == "noise = torch.rand(3)"
    assert program.verification is not None
    assert [each.name for each in program.verification.outputs if each.not_compared] == ["b", "c", "d"]
    compared = [each for each in program.verification.outputs if not each.not_compared]
    assert all(each.absolute is not None and each.absolute < 1e-6 for each in compared)
    wrong = {torch.ops.aten.sin.default: lambda x: op.Cos(x)}
    with pytest.raises(ExportFailed) as failed:
        onnxplain.export(Mixed(), (x,), verify=True, output_names=["a", "b"], custom_translation_table=wrong)
    assert [each.rule.outputs for each in failed.value.findings if each.rule.id == "OXP6008"] == [("a",)]  # type: ignore[attr-defined]


def test_the_line_of_an_operator_that_becomes_several_nodes(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                y = torch.nn.functional.dropout(y, 0.5, True)  # drawn
                return y + 1
    """
    program = onnxplain.export(load(source).Net(), (torch.ones(3),), verify=True)
    (finding,) = (each for each in program.diagnostics.findings if each.rule.id == "OXP6006")
    assert finding.location is not None
    assert finding.location.line == marked("drawn")[0]


def test_how_far_outputs_are_apart() -> None:
    class Pair(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.sin(), torch.stack([0 * x.sum(), x[0] / 0, 0 / (x[0] * 0)])

    x = torch.tensor([0.5, 100.0])
    near = {torch.ops.aten.sin.default: lambda x: op.Add(op.Sin(x), op.Constant(value_float=2.0**-15))}
    program = onnxplain.export(Pair(), (x,), verify=True, custom_translation_table=near)
    assert program.verification is not None
    sine, zero = program.verification.outputs
    assert sine.absolute == pytest.approx(2.0**-15, rel=1e-2)
    assert sine.relative == pytest.approx(2.0**-15 / 0.4794, rel=1e-2)
    assert (zero.absolute, zero.relative) == (0, 0)
    assert onnxplain.export(Pair(), (x,)).verification is None


def test_an_assertion_is_told_which_outputs_are_random() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    options = {"output_names": ["a", "b", "c", "d", "e"]}
    for named in ((), ("b", "c")):
        with pytest.raises(AssertionError, match="OXP6006"):
            assert_exports(Mixed(), x, random_outputs=named, **options)
    assert assert_exports(Mixed(), x, random_outputs={"b", "c", "d"}, **options).verification is not None
    assert assert_exports(Mixed(), x, verify=False, **options).verification is None
    for wrong in ("b", 3):
        with pytest.raises(onnxplain.InvalidArgument, match="random_outputs"):
            assert_exports(Mixed(), x, random_outputs=wrong)  # type: ignore[arg-type]


class Directions(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, values, vh = torch.linalg.svd(x, full_matrices=False)
        return u, vh, torch.linalg.eigh(x.mT @ x)[1], (u * values) @ vh, x.sin()


@needs_runtime
@pytest.mark.parametrize("seed", range(3))
def test_the_signs_of_vectors_are_no_difference(seed: int) -> None:
    args = (torch.randn(4, 3, generator=torch.Generator().manual_seed(seed)),)
    program = onnxplain.export(Directions(), args, verify=True)
    assert {finding.rule.id for finding in program.diagnostics.findings} == {"OXP1036", "OXP6006"}
    wrong = {torch.ops.aten.sin.default: lambda x: op.Cos(x)}
    with pytest.raises(ExportFailed) as failed:
        onnxplain.export(Directions(), args, verify=True, custom_translation_table=wrong)
    (finding,) = (each for each in failed.value.findings if each.rule.id == "OXP6008")
    assert finding.rule.outputs == (program.model.graph.outputs[-1].name,)  # type: ignore[attr-defined]


class Bent(torch.nn.Module):
    """Bends vectors, whose signs are not unique, and other values."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, values, vh = torch.linalg.svd(x, full_matrices=False)
        return u.sin(), vh.sin(), torch.linalg.eigh(x.mT @ x)[1].sin(), values.sin(), ((u * values) @ vh).sin()


@needs_runtime
def test_only_what_depends_on_signs_is_not_compared() -> None:
    args = (torch.tensor([[3.0, 1.0], [0.5, 2.0], [1.0, -1.0]]),)
    log = verified(
        Bent(), args, {torch.ops.aten.sin.default: lambda x: op.Sin(op.Mul(x, op.Constant(value_float=-1.5)))}, output_names=list("abcde")
    )
    assert [finding.rule.outputs for finding in differences(log)] == [("d", "e")]  # type: ignore[attr-defined]
    assert [finding.rule.outputs for finding in log.findings if finding.rule.id == "OXP6006"] == [("a", "b", "c")]  # type: ignore[attr-defined]


def test_products_of_two_vectors_depend_on_signs() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        vectors = torch.linalg.eigh(x)[1]
        return (vectors[:, 0] * vectors[:, 1]).sin()

    wrong = {torch.ops.aten.sin.default: lambda x: op.Sin(op.Mul(x, op.Constant(value_float=-1.5)))}
    assert not differences(verified(model, (torch.tensor([[2.0, 1.0], [1.0, 1.0]]),), wrong))


def test_a_program_that_was_given_is_compared() -> None:
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
    assert not verified(program, ()).findings
    assert differences(verified(torch.export.export(torch.nn.Softsign(), (torch.ones(3),)), (), shifted(0.5)))


def test_what_onnx_runtime_refuses(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                return y.abs()  # refused
    """
    table = {torch.ops.aten.abs.default: lambda x: op.Gather(x, op.Constant(value_ints=[99, 98, 97]))}
    log = verified(load(source).Net(), (torch.ones(3),), table)
    (finding,) = log.findings
    assert finding.rule.id == "OXP6001"
    assert finding.location is not None
    assert finding.location.line == marked("refused")[0]


def test_a_kernel_that_onnx_runtime_lacks() -> None:
    x = torch.ones(3, dtype=torch.bfloat16)
    program = onnxplain.export(lambda x: torch.cumsum(x, 0), (x,), verify=True)
    (finding,) = program.diagnostics.findings
    assert finding.rule.id == "OXP6004"
    assert (finding.rule.operator, finding.rule.dtypes) == ("CumSum", ("BFLOAT16", "INT64"))  # type: ignore[attr-defined]
    assert program.diagnostics.exit_code == 0
    assert program.verification is not None
    (output,) = program.verification.outputs
    assert output.not_compared


def test_an_exception_of_eager_pytorch(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                if not torch.compiler.is_exporting():
                    raise KeyError("not today")  # raised
                return x * 2
    """
    log = verified(load(source).Net(), (torch.ones(3),))
    finding = next(finding for finding in log.findings if finding.rule.id == "OXP6003")
    assert "not today" in finding.cause
    assert finding.location is not None
    assert finding.location.line == marked("raised")[0]


def test_where_the_model_asks_whether_it_is_exported(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                if torch.compiler.is_exporting():  # asked
                    x = x * 2
                return x
    """
    (finding,) = differences(verified(load(source).Net(), (torch.ones(3),)))
    assert finding.location is not None
    assert finding.location.line == marked("asked")[0]


EIGHT_BITS = [torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8, torch.float16, torch.bfloat16, torch.float64, *EIGHT_BITS])
def test_dtypes_go_in_and_come_out(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 4.0]]).to(dtype)
    program = onnxplain.export(lambda x: (x.clone(), x.to(torch.float32)), (x,), verify=True)
    assert {each.rule.id for each in program.diagnostics.findings} == ({"OXP1040"} if dtype is torch.float64 else set())
    for run in (program, program.call_reference):
        same, widened = run(x)
        assert same.dtype is dtype
        assert torch.equal(same.float(), x.float())
        assert torch.equal(widened, x.float())
    assert torch.equal(program(x.t().contiguous().t())[1], x.float())


def test_eight_bits_widen_no_tolerance() -> None:
    x = torch.ones(3).to(torch.float8_e5m2)
    (finding,) = differences(verified(lambda x: x.to(torch.float32).abs(), (x,), shifted(0.5)))
    assert finding.rule.tolerance == 1e-4  # type: ignore[attr-defined]


def test_a_model_above_the_limit_of_a_message_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = torch.nn.Linear(80, 4), torch.randn(2, 80)
    program = onnxplain.export(model, (x,), verify=True)
    made: list[type] = []

    def session(given: str | bytes) -> onnxruntime.InferenceSession:
        made.append(type(given))
        return onnxruntime.InferenceSession(given, providers=["CPUExecutionProvider"])

    size = 4 * (80 * 4 + 4)
    for limit in (2 * size + 2, 2 * size):
        monkeypatch.setattr("onnxplain.weights.PROTOBUF_LIMIT", limit)
        program.initialize_inference_session(session)
        torch.testing.assert_close(program(x)[0], model(x).detach(), rtol=1e-4, atol=1e-5)
    assert made == [bytes, str]


def test_numbers_are_inputs() -> None:
    program: ONNXProgram = onnxplain.export(
        lambda x, n: x + n, (torch.ones(3), 2), dynamic_shapes=({}, torch.export.Dim.DYNAMIC), verify=True
    )
    assert program(torch.ones(3), 5)[0].tolist() == [6.0, 6.0, 6.0]
    assert program.call_reference(torch.ones(3), 5)[0].tolist() == [6.0, 6.0, 6.0]


class Softmax(torch.nn.Module):
    """Computes in float32 and returns float64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ x.T, 0).double()


class Cancelling(torch.nn.Module):
    """Loses all digits in float32: the result is rounding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((x * 1e4).exp().log() - x * 1e4 + (x + 1e6).sin() * 0).sum() + ((x.cumsum(0) * 1e7).sin()).sum()


@pytest.mark.parametrize("model", [Softmax(), Cancelling()], ids=["higher-dtype", "cancelling"])
@pytest.mark.parametrize("seed", range(4))
def test_rounding_is_no_difference(model: torch.nn.Module, seed: int) -> None:
    torch.manual_seed(seed)
    assert differences(verified(model, (torch.randn(24, 24) / 100,))) == []


@pytest.mark.parametrize(("times", "count"), [(3.9, 0), (4.1, 1)])
def test_a_result_may_be_four_times_as_far_from_float64_as_eager(times: float, count: int) -> None:
    class Lost(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1e4 - 1e4).abs()

    # NOTE: next to 1e4 the distance of float32 numbers is 2 ** -10, so that the result is 0 and misses the exact one, which is `x`.
    x = 0.4 * 2**-10
    assert len(differences(verified(Lost(), (torch.full((3,), x),), shifted((1 - times) * x)))) == count


def in_a_branch(x: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
    return torch.cond(flag, lambda x: x.abs().float(), lambda x: x.float(), (x,))  # type: ignore[no-any-return]


@pytest.mark.parametrize("model", [lambda x, flag: x.abs().float() * flag, in_a_branch], ids=["plain", "branch"])
def test_the_tolerance_is_that_of_the_lowest_dtype_on_the_way(model: Callable[..., torch.Tensor]) -> None:
    args = torch.zeros(3, dtype=torch.float16), torch.tensor(True)
    (finding,) = differences(verified(model, args, shifted(12e-3)))
    assert finding.rule.tolerance == 1e-2  # type: ignore[attr-defined]


def test_a_wrong_result_that_is_cast_to_a_higher_dtype_is_found() -> None:
    table = {torch.ops.aten.sigmoid.default: lambda x: op.Add(op.Sigmoid(x), op.Constant(value_float=0.01))}

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(x).double()

    assert len(differences(verified(Model(), (torch.randn(4, 4),), table))) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool], ids=str)
def test_one_element_that_float64_decides_otherwise_hides_no_wrong_result(dtype: torch.dtype) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * 3 > 0.3).to(dtype)

    # NOTE: three times 0.1 is 0.3 in float32, and more than that in float64.
    x = torch.cat([torch.tensor([0.1]), torch.rand(50)])
    assert bool((x.double() * 3 > 0.3)[0]) is not bool((x * 3 > 0.3)[0])
    table = {torch.ops.aten.gt.Scalar: lambda x, y: op.Less(x, op.CastLike(op.Constant(value_float=y), x))}
    assert len(differences(verified(Model(), (x,), table))) == 1


def test_verification_leaves_buffers_and_random_numbers() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))
            self.norm = torch.nn.BatchNorm1d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen += 1
            torch.rand(2)
            result: torch.Tensor = self.norm(x)
            return result

    model = Model()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    x = torch.randn(4, 3)
    states = torch.get_rng_state(), random.getstate(), str(np.random.get_state())
    verified(model, (x,))
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert str(np.random.get_state()) == states[2]


def test_an_output_of_another_dtype_or_shape_is_told() -> None:
    def returned(x: torch.Tensor) -> torch.Tensor:
        return x[1:].int() if torch.compiler.is_exporting() else x

    (finding,) = differences(verified(returned, (torch.ones(3),)))
    assert finding.rule.id == "OXP6002"
    assert any("'float32[3]'" in note and "'int32[2]'" in note for note in finding.notes)
