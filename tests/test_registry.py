"""Which translation an operator gets, and how users bring their own."""

from __future__ import annotations

import inspect

import numpy as np
import onnx_ir as ir
import pytest
import torch
from onnxscript import opset18 as op

import onnxplain
from onnxplain import ExportFailed, OnnxRegistry, ops


def airy(x: ir.Value) -> ir.Value:
    return op.Mul(x, np.float32(2.0).item())


def other(x: ir.Value) -> ir.Value:
    return op.Mul(x, 3.0)


def test_torchlib_ours_and_the_users_in_rising_order() -> None:
    registry = OnnxRegistry()
    registry.register_op(airy, "aten", "conv2d")
    registry.register_op(other, "aten", "conv2d", "default")
    found = registry.get_op_functions("aten", "conv2d")
    assert found is not None
    assert [each.origin for each in found if not each.is_complex] == ["torchlib", "onnxplain", "user", "user"]
    assert [each.function for each in found[-2:]] == [airy, other]


def test_is_registered() -> None:
    registry = OnnxRegistry()
    assert registry.opset_version == 20
    assert registry.is_registered_op("aten", "add", "Tensor")
    assert not registry.is_registered_op("aten", "special_airy_ai")
    assert registry.get_op_functions("aten", "special_airy_ai") is None
    registry.register_op(airy, "aten", "special_airy_ai")
    assert registry.is_registered_op("aten", "special_airy_ai", "default")
    # Registries do not share what users register.
    assert not OnnxRegistry().is_registered_op("aten", "special_airy_ai")


def test_nearest_name() -> None:
    assert OnnxRegistry().nearest("aten::special_erfinv") == "aten::special_erf"
    assert OnnxRegistry().nearest("zzz::qqq") == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((airy, "aten::add", "Tensor"), "namespace"),
        ((airy, "aten", "add.Tensor"), "op_name"),
        ((airy, "aten", ""), "op_name"),
        ((airy, "aten", "add", "Ten sor"), "overload"),
        ((airy, "aten", 3), "op_name"),
    ],
)
def test_malformed_names_are_refused(arguments: tuple[object, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        OnnxRegistry().register_op(*arguments)  # type: ignore[arg-type]


def test_function_has_to_be_callable() -> None:
    with pytest.raises(TypeError, match="function"):
        OnnxRegistry().register_op("airy", "aten", "add")  # type: ignore[arg-type]


@pytest.mark.parametrize("functions", [airy, [other, airy]])
def test_custom_translation_wins(functions: object) -> None:
    table = {torch.ops.aten.special_airy_ai.default: functions}
    program = onnxplain.export(torch.special.airy_ai, (torch.ones(3),), custom_translation_table=table)  # type: ignore[arg-type]
    torch.testing.assert_close(program(torch.ones(3))[0], torch.full((3,), 2.0))


def test_failing_translation_is_a_finding_at_both_lines() -> None:
    def broken(x: ir.Value) -> ir.Value:
        raise KeyError("no such thing")

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x) + torch.special.bessel_j0(x)

    table = {torch.ops.aten.special_airy_ai.default: broken, torch.ops.aten.special_bessel_j0.default: broken}
    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(model, (torch.ones(3),), custom_translation_table=table)  # type: ignore[arg-type]
    findings = caught.value.findings
    assert [each.rule.id for each in findings] == ["OXP3004", "OXP3004"]
    for finding in findings:
        assert finding.location is not None
        assert finding.location.line == broken.__code__.co_firstlineno + 1
        assert [place.line for place in finding.related] == [model.__code__.co_firstlineno + 1]
        assert finding.fixes
        assert "no such thing" in finding.cause


def test_our_translations_take_arguments_as_the_schema_has_them() -> None:
    for name, found in ops.load().items():
        if not name.startswith("aten::") or name.endswith("_"):
            continue
        packet, _, overload = name.removeprefix("aten::").partition(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload or "default")._schema
        expected = [argument.name for argument in schema.arguments if not argument.kwarg_only]
        for function, _ in found:
            parameters = list(inspect.signature(function).parameters)[: len(expected)]
            assert parameters == expected[: len(parameters)], name
