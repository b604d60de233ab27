"""Differences from eager PyTorch that are none: equal elements in another order, and results that rounding decides."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from onnxscript import opset20 as op
from torch.nn import functional as F

import onnxplain
from onnxplain import ExportFailed
from onnxplain.diagnostics import Log
from onnxplain.runtime import lockstep

aten = torch.ops.aten


def verified(model: Any, args: tuple[Any, ...], table: dict[Any, Any] | None = None, **options: Any) -> Log:
    try:
        return onnxplain.export(model, args, custom_translation_table=table, verify=True, **options).diagnostics
    except ExportFailed as failed:
        return failed.log


def wrong(log: Log) -> list[str]:
    """The outputs that findings call wrong. Rounding is a note."""
    assert {finding.rule.id for finding in log.findings} <= {"OXP6008", "OXP6009", "OXP6013", "OXP4002"}
    return [name for finding in log.findings if finding.rule.id in ("OXP6008", "OXP6009") for name in finding.rule.outputs]  # type: ignore[attr-defined]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


A, B = random(64, 256), random(256, 64, seed=1)


def digits(*shape: int) -> torch.Tensor:
    return torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(0))


TIES: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "sort": (lambda x: x.sort(-1), digits(4, 64)),
    "descending": (lambda x: x.sort(0, descending=True), digits(64, 3)),
    "floats and NaN": (lambda x: x.sort(-1), torch.where(random(4, 64) > 1, torch.nan, random(4, 64).round())),
    "argsort": (lambda x: x.argsort(-1), digits(4, 64)),
    "ranks": (lambda x: x.argsort(-1).argsort(-1), digits(4, 64)),
    "chosen by them": (lambda x: torch.arange(64.0)[x.argsort(-1)] * 2, digits(4, 64)),
    "topk": (lambda x: x.topk(5), digits(4, 64)),
    "smallest": (lambda x: x.topk(5, largest=False, sorted=False), digits(4, 64)),
    "kthvalue": (lambda x: (x.kthvalue(3, 1), x.kthvalue(9, 0, keepdim=True)), digits(40, 64)),
    "mode": (lambda x: (x.mode(1), x.mode(0, keepdim=True)), digits(40, 64)),
    "median": (lambda x: (x.median(1), x.nanmedian(0, keepdim=True)), digits(40, 64).float()),
}


@pytest.mark.parametrize("kind", TIES)
def test_equal_elements_have_no_order(kind: str) -> None:
    model, x = TIES[kind]
    assert wrong(verified(model, (x,))) == []


def test_other_sizes_are_compared_as_well() -> None:
    program = onnxplain.export(lambda x: x.sort(-1), (digits(4, 64),), verify=True, dynamic_shapes=({0: "rows", 1: "columns"},))
    assert program.verification is not None
    assert len(program.verification.sizes) == 2


def backwards(x: Any, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    """A translation of `sort` along the last dim of size 64 with equal elements in the opposite order."""
    flipped = op.Gather(x, op.Constant(value_ints=list(range(63, -1, -1))), axis=1)
    values, positions = op.TopK(flipped, integer(64), axis=-1, largest=0)
    return values, op.Sub(integer(63), positions)


def exactly(a: Any, b: Any) -> Any:
    """A translation of `mm` that rounds otherwise than PyTorch does."""
    return op.Cast(op.MatMul(op.Cast(a, to=11), op.Cast(b, to=11)), to=1)


def test_rounding_is_told_beside_the_order_of_equal_elements() -> None:
    """A note tells of rounding, but not of the order, unless rounding has a part in the output."""
    table = {aten.sort.default: backwards, aten.matmul.default: exactly}

    def model(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        positions, whole = x.sort(-1)[1], (a @ b * 1e6).long()
        return positions * 2, positions + whole

    log = verified(model, (digits(64, 64), A, B), table, output_names=["order", "both"])
    (finding,) = log.findings
    assert (finding.rule.id, finding.rule.outputs) == ("OXP6013", ("both",))  # type: ignore[attr-defined]


def sort_by(change: Callable[..., Any], **attributes: int) -> Callable[..., Any]:
    """A translation of `sort` along the last dim of size 64 whose positions are changed."""

    def translation(x: Any, dim: int = -1, descending: bool = False) -> Any:
        values, positions = op.TopK(x, op.Constant(value_ints=[64]), **{"axis": -1, "largest": 0, **attributes})
        return values, change(positions)

    return translation


def integer(value: int) -> Any:
    return op.Constant(value_ints=[value])


WRONG_POSITIONS: dict[str, Callable[..., Any]] = {
    "of other elements": lambda at: op.Mod(op.Add(at, integer(1)), integer(64)),
    "twice": lambda at: op.Gather(at, op.Constant(value_ints=[*range(63), 62]), axis=1),
    "outside": lambda at: op.Add(at, integer(64)),
    "from the end": lambda at: op.Sub(at, integer(64)),
    "all the same": lambda at: op.Mul(at, integer(0)),
}


@pytest.mark.parametrize("kind", WRONG_POSITIONS)
@pytest.mark.parametrize("model", [lambda x: x.sort(-1), lambda x: x.sort(-1)[1] * 3 - 1], ids=["direct", "computed with"])
def test_wrong_positions_of_equal_elements(kind: str, model: Callable[..., Any]) -> None:
    x = digits(4, 64)
    assert len(wrong(verified(model, (x,), {aten.sort.default: sort_by(WRONG_POSITIONS[kind])}))) == 1


def test_a_stable_sort_keeps_the_order() -> None:
    x = digits(4, 64)
    assert wrong(verified(lambda x: x.sort(dim=-1, stable=True), (x,))) == []
    assert wrong(verified(lambda x: x.sort(dim=-1, stable=False), (x,), {aten.sort.stable: backwards})) == []
    assert len(wrong(verified(lambda x: x.sort(dim=-1, stable=True), (x,), {aten.sort.stable: backwards}))) == 1


DECIDED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "integers": (lambda a, b: (a @ b * 1e6).long(), (A, B)),
    "sums of integers": (lambda a, b: ((a @ b) * 1e6).long().cumsum(1), (A, B)),
    "rounded": (lambda a, b: ((a @ b) * 1e6).round(), (A, B)),
    "of softmax": (lambda a: (a.softmax(-1) * 1e7).round().int(), (A,)),
    "bools": (lambda a, b: ((a @ b) * 1e5).round() % 2 == 0, (A, B)),
    "chosen": (lambda a, b: torch.where(((a @ b) * 1e5).round() % 2 == 0, a[:, :64] * 3, -a[:, :64]), (A, B)),
    "positions": (lambda a, b: F.embedding(((a @ b) * 1000).long() % 50, torch.arange(100.0).reshape(50, 2)), (A, B)),
    "how many": (lambda a, b: (((a @ b) * 1e5).round() % 2).nonzero(), (A, B)),
    "another kernel": (lambda q: (F.scaled_dot_product_attention(q, q, q) * 1e6).int(), (random(2, 4, 16, 32),)),
    "sums of large numbers": (lambda a: a.cumsum(-1), (random(4, 4000) * 100,)),
    "waves of them": (lambda a: a.cumsum(-1).sin() * 3, (random(4, 400, seed=1) * 100,)),
    "spectra of them": (
        lambda a: torch.view_as_real(torch.stft(a, 64, 16, window=torch.hann_window(64), return_complex=True)),
        (A * 8000,),
    ),
    "pairs of them": (lambda a: torch.ops.aten.stft(a, 64, 16, None, torch.hann_window(64), False, True, False), (A * 8000,)),
    "half": (lambda a, b: ((a @ b) * 100).long(), (A[:16].half(), B[:, :16].half())),
}


@pytest.mark.parametrize("kind", DECIDED)
def test_results_that_rounding_decides(kind: str) -> None:
    model, args = DECIDED[kind]
    assert wrong(verified(model, args)) == []


def shifted(function: Callable[..., Any], by: float) -> Callable[..., Any]:
    return lambda x, *_, **__: op.Add(function(x), op.CastLike(op.Constant(value_float=by), function(x)))


def scaled(by: float) -> Callable[..., Any]:
    return lambda x, _: op.Mul(x, op.Constant(value_float=by))


PLANTED: dict[str, tuple[Callable[..., Any], dict[Any, Callable[..., Any]]]] = {
    "floor for trunc": (lambda a, b: (a @ b * 1e6).long(), {aten._to_copy.default: lambda x, **_: op.Cast(op.Floor(x), to=7)}),
    "the opposite": (
        lambda a, b: ((a @ b) * 1e5).round() % 2 == 0,
        {aten.eq.Scalar: lambda x, y: op.Not(op.Equal(x, op.CastLike(op.Constant(value_float=float(y)), x)))},
    ),
    "a wrong factor before": (lambda a, b: ((a @ b) * 1e6).long(), {aten.mul.Tensor: scaled(1.001e6)}),
    "a lower precision": (
        lambda a, b: (a * 100).cumsum(-1) + b.sum(),
        {aten.cumsum.default: lambda x, _: op.Cast(op.CumSum(op.Cast(op.Cast(x, to=10), to=1), op.Constant(value_int=1)), to=1)},
    ),
    "a wrong integer behind": (lambda a, b: (((a @ b) * 1e6).long() + 5).abs(), {aten.abs.default: shifted(op.Abs, 1)}),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_wrong_results_beside_rounding(kind: str) -> None:
    model, table = PLANTED[kind]
    # NOTE: `to.dtype` has a translation, so that the operator of some versions of torch is not `_to_copy`.
    table |= {aten.to.dtype: lambda x, *_: op.Cast(op.Floor(x), to=7)} if kind == "floor for trunc" else {}
    log = verified(model, (A, B), table)
    assert len(wrong(log)) == 1


BEFORE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a number from a size": lambda x: F.elu(x, 1.0, x.shape[0]),
    "a choice of numbers from sizes": lambda x: torch.where(x > 0, x.shape[0] / 2, 3.0),
    "a power of a size": lambda x: x.shape[0] ** x,
    "numbers without a sign": lambda x: (x.abs() * 9).to(torch.uint64).to(torch.float32),
    "a size that is rounded": lambda x: F.interpolate(x[None], scale_factor=1.7, mode="nearest-exact")[0],
    "parts of a dynamic number": lambda x: torch.cat(x.chunk(2, dim=2), dim=2),
    "one side of a spectrum": lambda x: torch.stft(x.flatten(), 4, window=torch.ones(4), return_complex=True).real,
}


@pytest.mark.parametrize("kind", BEFORE)
def test_the_operator_is_found_behind(kind: str) -> None:
    first = BEFORE[kind]
    table = {aten.neg.default: lambda x: op.Add(op.Neg(x), op.CastLike(op.Constant(value_float=1.0), x))}
    log = verified(lambda x: first(x).neg(), (random(5, 4, 6),), table, dynamic_shapes=({0: "n", 2: "m"},))
    (finding,) = (each for each in log.findings if each.rule.id == "OXP6008")
    assert finding.rule.operator == "aten::neg"  # type: ignore[attr-defined]


def test_small_faults_that_add_up_are_found() -> None:
    assert wrong(verified(lambda x: -(-x.abs()).abs(), (torch.zeros(3),), {aten.abs.default: shifted(op.Abs, 8e-5)})) != []
    # NOTE: a power of two becomes ten times as large without rounding, which is not yet a jump.
    assert wrong(verified(lambda x: x.abs() * 10, (torch.zeros(3),), {aten.abs.default: shifted(op.Abs, 2**-14)})) != []


@torch.library.custom_op("onnxplain_tests::single", mutates_args=())
def single(x: torch.Tensor) -> torch.Tensor:
    """-x, but not in float64."""
    assert x.dtype is torch.float32
    return -x


@single.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_a_fault_before_an_operator_that_takes_no_float64() -> None:
    table = {aten.abs.default: shifted(op.Abs, 0.5), torch.ops.onnxplain_tests.single.default: op.Neg}
    (finding,) = verified(lambda x: single(x.abs()), (torch.ones(3),), table).findings
    assert (finding.rule.id, finding.rule.operator) == ("OXP6008", "aten::abs")  # type: ignore[attr-defined]


def test_a_fault_of_a_translation_with_many_nodes() -> None:
    def long(x: Any) -> Any:
        for _ in range(41):
            x = op.Sin(op.Abs(x))
        return x

    (finding,) = verified(lambda x: x.abs(), (torch.ones(3),), {aten.abs.default: long}).findings
    assert (finding.rule.id, finding.rule.operator) == ("OXP6008", "aten::abs")  # type: ignore[attr-defined]


def test_the_first_wrong_line_behind_rounding(load: Callable[..., ModuleType], marked: Callable[[str], list[int]]) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, a, b):
                whole = ((a @ b) * 1e6).long()
                return whole.abs() + whole  # wrong
    """
    log = verified(load(source).Net(), (A, B), {aten.abs.default: shifted(op.Abs, 1)})
    (finding,) = log.findings
    assert (finding.rule.id, finding.location and finding.location.line) == ("OXP6008", *marked("wrong"))


def test_what_only_the_whole_model_computes_is_no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operator by operator, the first output differs by rounding. Both have another sign in the whole model."""
    real, loaded = onnxruntime.InferenceSession, list[onnx.ModelProto]()

    def session(model: bytes, *args: Any, **kwargs: Any) -> onnxruntime.InferenceSession:
        proto = onnx.load_from_string(model)
        for node in () if loaded else proto.graph.node:
            node.op_type = {"Abs": "Neg"}.get(node.op_type, node.op_type)
        loaded.append(proto)
        return real(proto.SerializeToString(), *args, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    log = verified(lambda a, b: ((a @ b * 1e6).long().abs(), a.abs()), (A, B), {aten.matmul.default: exactly})
    assert [(each.rule.id, each.fails) for each in log.findings] == [("OXP6002", True)] * 2


STEPS = """<ir_version: 10, opset_import: ["" : 20]> steps (float[n] x) => (float[n] y8) {
    y1 = Sin(x) y2 = Sin(y1) y3 = Sin(y2) y4 = Sin(y3) y5 = Sin(y4) y6 = Add(y5, y2) y7 = Sin(y6) y8 = Sin(y7)
}"""


def steps(shown: str, **options: Any) -> tuple[lockstep.Lockstep, dict[str, ir.Value]]:
    """A run of the steps part by part, and their values by name."""
    model = ir.from_onnx_text(STEPS)
    values = {value.name or "": value for value in (*model.graph.inputs, *(value for node in model.graph for value in node.outputs))}
    for value in values.values():
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["n"])

    def write(*_: Any) -> None:
        raise AssertionError("the model is small")

    return lockstep.Lockstep(model, [torch.zeros(2)], [values[name] for name in shown.split()], write, **options), values


@pytest.mark.parametrize(
    ("memory", "known"),
    [(1, ["x y2", "x y2 y4", "x y2 y4 y6", "x y6 y8", "x y8"]), (2, ["x y2", "x y2 y4", "x y2 y4 y6", "x y2 y4 y6 y8", "x y6 y8"])],
)
def test_values_stay_until_the_last_part_that_takes_them(memory: int, known: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "_NODES", 2)
    found = []

    def names(values: Any) -> str:
        return " ".join(sorted(value.name for value in values))

    run, _ = steps("y8", memory=memory, on_part=lambda _, values: found.append(names(values)))
    run.finish()
    assert [*found, names(run.values)] == known


def test_a_part_ends_where_its_values_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two floats have eight bytes. Only values that are shown count."""
    monkeypatch.setattr(lockstep, "_BYTES", 16)
    for shown, parts in (("y1 y2 y3 y4 y5 y6 y7 y8", [2, 2, 2, 2]), ("y1 y3 y5 y8", [3, 5]), ("y8", [8])):
        sizes: list[int] = []
        run, _ = steps(shown, on_part=lambda part, _, sizes=sizes: sizes.append(len(part.nodes)))
        run.finish()
        assert (sizes, run.runs) == (parts, len(parts))


def test_values_that_are_shown_stay_until_they_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "_NODES", 2)
    run, values = steps("y2 y3 y8")
    assert run.of(values["y3"]) is not None
    assert run.runs == 2
    run.release(values["y3"])
    run.release(values["y2"])
    # A later part takes y2, but none takes y3.
    assert (run.of(values["y3"]), run.of(values["y2"]) is None) == (None, False)
    assert run.of(values["y8"]) is not None
    assert (run.runs, run.of(values["y2"])) == (4, None)
