"""Which arguments a translation is called with, and which forms of an operator have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxscript
import pytest
import torch
from onnxscript import opset18 as op

import onnxplain
from onnxplain import ExportFailed, OnnxRegistry
from onnxplain.diagnostics import Diagnostic

LIBRARY = torch.library.Library("dispatching", "FRAGMENT")
SCHEMAS = (
    "scaled(Tensor x, int n=2, *, int? k=None, Device? device=None) -> Tensor",
    "scaled.other(Tensor x, float n) -> Tensor",
    "chosen(Tensor x, int? axis=3, int n=2) -> Tensor",
    "named(Tensor x, *, int? k=1) -> Tensor",
    "joined(Tensor x, Tensor y, Tensor z) -> Tensor",
    "halves(Tensor x) -> Tensor[]",
    "lonely(Tensor x) -> Tensor",
    "lonely2(Tensor x) -> Tensor",
    "weighted(Tensor x, Tensor y, float? alpha=None) -> Tensor",
    "weighted.more(Tensor x, Tensor y, float? alpha=None, int n=2) -> Tensor",
)
for schema in SCHEMAS:
    LIBRARY.define(schema)
    results = 2 if schema.endswith("[]") else 1
    # NOTE: an export cannot look into NumPy, so it does not write the operators with others.
    for key in ("CPU", "Meta"):

        def kernel(x: torch.Tensor, *_: Any, results: int = results, key: str = key, **__: Any) -> Any:
            each = [torch.from_numpy(x.numpy() * 2) if key == "CPU" else torch.empty_like(x) for _ in range(results)]
            return each if results > 1 else each[0]

        LIBRARY.impl(schema.partition("(")[0], kernel, key)
LIBRARY.define("composed(Tensor x) -> Tensor")
LIBRARY.impl("composed", lambda x: torch.ops.dispatching.lonely(x) * 2, "CompositeImplicitAutograd")

ours = torch.ops.dispatching
X = torch.ones(3)

Call = tuple[tuple[Any, ...], dict[str, Any]]


def called(model: Callable[..., Any], operator: Any, make: Callable[[list[Any]], Callable[..., Any]]) -> list[Any]:
    """What the translation that `make` makes puts into its list when `model` is exported."""
    seen: list[Any] = []
    onnxplain.export(model, (X,), custom_translation_table={operator: make(seen)})
    return seen


def refused(model: Callable[..., Any], table: dict[Any, Callable[..., Any]], args: tuple[Any, ...] = (X,)) -> list[Diagnostic]:
    with pytest.raises(ExportFailed) as failed:
        onnxplain.export(model, args, custom_translation_table=table)
    return list(failed.value.findings)


def positional(seen: list[Any]) -> Callable[..., Any]:
    def translate(x: Any, n: int, k: Any = 7) -> Any:
        seen.append((n, k))
        return op.Identity(x)

    return translate


def with_defaults(seen: list[Any]) -> Callable[..., Any]:
    def translate(x: Any, axis: int = 5, n: int = 9) -> Any:
        seen.append((axis, n))
        return op.Identity(x)

    return translate


def any_number(seen: list[Any]) -> Callable[..., Any]:
    def translate(*values: Any) -> Any:
        seen.append(len(values))
        return op.Identity(values[0])

    return translate


def keyword_only(seen: list[Any]) -> Callable[..., Any]:
    def translate(x: Any, *, k: Any = 7) -> Any:
        seen.append(k)
        return op.Identity(x)

    return translate


def without_default(seen: list[Any]) -> Callable[..., Any]:
    def translate(x: Any, axis: Any, n: int) -> Any:
        seen.append((axis, n))
        return op.Identity(x)

    return translate


@pytest.mark.parametrize(
    ("model", "operator", "make", "seen"),
    [
        (lambda x: ours.scaled(x), ours.scaled.default, positional, [(2, 7)]),
        (lambda x: ours.scaled(x, 5), ours.scaled.default, positional, [(5, 7)]),
        (lambda x: ours.scaled(x, k=4), ours.scaled.default, positional, [(2, 4)]),
        (lambda x: ours.scaled(x, device="cpu"), ours.scaled.default, positional, [(2, 7)]),
        (lambda x: ours.chosen(x, None, 4), ours.chosen.default, with_defaults, [(5, 4)]),
        (lambda x: ours.chosen(x, 6, 4), ours.chosen.default, with_defaults, [(6, 4)]),
        (lambda x: ours.chosen(x), ours.chosen.default, with_defaults, [(5, 9)]),
        (lambda x: ours.chosen(x, None, 4), ours.chosen.default, without_default, [(None, 4)]),
        (lambda x: ours.chosen(x), ours.chosen.default, without_default, [(3, 2)]),
        (lambda x: ours.joined(x, x, x), ours.joined.default, any_number, [3]),
        (lambda x: ours.named(x, k=None), ours.named.default, keyword_only, [7]),
        (lambda x: ours.named(x, k=5), ours.named.default, keyword_only, [5]),
        (lambda x: ours.named(x), ours.named.default, keyword_only, [7]),
    ],
    ids=[
        "the schema's default",
        "given",
        "by keyword",
        "the device means nothing",
        "None is the default",
        "not None",
        "own defaults",
        "None without a default",
        "all of the schema's defaults",
        "any number",
        "None by keyword",
        "number by keyword",
        "own default of a keyword",
    ],
)
def test_the_arguments_of_a_translation(
    model: Callable[..., Any], operator: Any, make: Callable[[list[Any]], Callable[..., Any]], seen: list[Any]
) -> None:
    assert called(model, operator, make) == seen


def narrow(x: Any) -> Any:
    return op.Identity(x)


@pytest.mark.parametrize(
    ("model", "argument"),
    [
        (lambda x: ours.scaled(x, 3), "n=3"),
        (lambda x: ours.scaled(x, 2, k=4), "k=4"),
        (lambda x: ours.scaled(x), None),
        (lambda x: ours.scaled(x, 2, device="cpu"), None),
    ],
)
def test_an_argument_that_the_translation_would_ignore(model: Callable[..., Any], argument: str | None) -> None:
    table = {ours.scaled.default: narrow}
    if argument is None:
        onnxplain.export(model, (X,), custom_translation_table=table)
        return
    (finding,) = refused(model, table)
    assert finding.rule.id == "OXP3002"
    assert finding.rule.problem.split()[-1] == argument  # type: ignore[attr-defined]
    assert finding.rule.supported == ("x",)  # type: ignore[attr-defined]
    assert finding.blocking
    assert finding.location is not None
    assert finding.location.line == narrow.__code__.co_firstlineno


def test_a_translation_that_decides_by_the_value_of_a_tensor() -> None:
    (finding,) = refused(lambda x: ours.scaled(x), {ours.scaled.default: lambda x: op.Neg(x) if op.ReduceMax(x) else x})
    assert finding.rule.id == "OXP3004"


def test_a_translation_without_parameters() -> None:
    (finding,) = refused(lambda x: ours.lonely(x), {ours.lonely.default: lambda: op.Constant(value_float=1.0)})
    assert (finding.rule.id, finding.rule.supported) == ("OXP3002", ("none",))  # type: ignore[attr-defined]


def test_another_overload() -> None:
    (finding,) = refused(lambda x: ours.scaled.other(x, 3.0), {ours.scaled.default: narrow})
    assert finding.rule.id == "OXP3002"
    assert finding.rule.problem.split()[-1] == "other"  # type: ignore[attr-defined]
    assert finding.rule.supported == ("dispatching::scaled",)  # type: ignore[attr-defined]
    (finding,) = refused(lambda x: ours.scaled(x), {ours.scaled.other: narrow})
    assert finding.rule.problem.split()[-1] == "default"  # type: ignore[attr-defined]
    assert finding.rule.supported == ("dispatching::scaled.other",)  # type: ignore[attr-defined]


def test_an_operator_without_any_translation() -> None:
    (finding,) = refused(lambda x: ours.lonely(x), {ours.lonely2.default: narrow})
    assert finding.rule.id == "OXP3001"
    assert any("dispatching::lonely2" in note for note in finding.notes)
    (finding,) = refused(lambda x: ours.lonely(x), {})
    assert (finding.rule.id, finding.rule.operator) == ("OXP3001", "dispatching::lonely")  # type: ignore[attr-defined]
    assert finding.notes == ()
    assert finding.fixes[0].snippet


def test_all_operators_are_reported_at_once() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: ours.lonely(x), lambda x: x + 1, (x,)) + torch.nextafter(x, x)  # type: ignore[no-any-return]

    found = refused(branches, {})
    assert sorted(finding.rule.operator for finding in found) == ["aten::nextafter", "dispatching::lonely"]  # type: ignore[attr-defined]


def test_translations_that_fail_beside_operators_without_any() -> None:
    def failing(x: Any, *_: Any, **__: Any) -> Any:
        raise ValueError("it fails")

    def model(x: torch.Tensor) -> torch.Tensor:
        return ours.scaled(ours.lonely(ours.scaled(x)).sin()) + ours.lonely2(x)

    findings = refused(model, {ours.scaled.default: failing})
    assert sorted(finding.rule.id for finding in findings) == ["OXP3001", "OXP3001", "OXP3004"]
    assert next(finding.count for finding in findings if finding.rule.id == "OXP3004") == 2


def test_complex_and_real() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.logcumsumexp(torch.complex(x, x), 0))

    (finding,) = refused(model, {})
    assert (finding.rule.id, finding.rule.supported) == ("OXP3002", ("real dtypes",))  # type: ignore[attr-defined]
    assert finding.rule.problem.split()[-1] == "complex64"  # type: ignore[attr-defined]
    registry = OnnxRegistry()
    registry.register_op(narrow, "dispatching", "lonely", is_complex=True)
    options = onnxplain.ExportOptions(onnx_registry=registry)
    with pytest.raises(ExportFailed) as failed:
        onnxplain.dynamo_export(Lonely(), X, export_options=options)
    (finding,) = failed.value.findings
    assert (finding.rule.problem, finding.rule.supported) == ("real dtypes", ("complex",))  # type: ignore[attr-defined]


class Lonely(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = ours.lonely(x)
        return result


def test_a_selected_result_needs_no_translation() -> None:
    def halves(x: Any) -> Any:
        return op.Identity(x), op.Neg(x)

    program = onnxplain.export(lambda x: ours.halves(x)[1], (X,), custom_translation_table={ours.halves.default: halves})
    assert program(X)[0].tolist() == [-1.0, -1.0, -1.0]
    assert [node.op_type for node in program.model.graph] == ["Neg"]


@onnxscript.script(onnxscript.values.Opset("dispatching.test", 1))
def scripted(x, y, alpha: float = 2.0):  # type: ignore[no-untyped-def]
    return op.Add(x, op.Mul(y, op.Constant(value_float=alpha)))


def test_functions_of_onnxscript() -> None:
    table: dict[Any, Any] = {ours.weighted.default: scripted}
    program = onnxplain.export(lambda x: ours.weighted(x, x), (X,), custom_translation_table=table)
    assert program(X)[0].tolist() == [3.0] * 3
    program = onnxplain.export(lambda x: ours.weighted(x, x, 3.0), (X,), custom_translation_table=table)
    assert program(X)[0].tolist() == [4.0] * 3
    (finding,) = refused(lambda x: ours.weighted.more(x, x, 3.0, 4), {ours.weighted.more: scripted})
    assert (finding.rule.id, finding.rule.supported) == ("OXP3002", ("x", "y", "alpha"))  # type: ignore[attr-defined]


def test_the_finding_names_the_operator_that_was_called() -> None:
    (finding,) = refused(lambda x: ours.composed(x), {})
    assert (finding.rule.id, finding.rule.operator) == ("OXP3001", "dispatching::composed")  # type: ignore[attr-defined]
    assert ["dispatching::lonely" in note for note in finding.notes] == [True]
    (finding,) = refused(lambda x: ours.lonely(x), {})
    assert finding.notes == ()
