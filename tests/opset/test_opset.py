"""A model becomes one of the opset that was asked for, and what the opset lacks is reported where the user asked for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import logs
import onnx
import onnx_ir as ir
import pytest

from onnxplain import opset
from onnxplain.diagnostics import Diagnostic, ExportFailed, Location
from onnxplain.request import Request

NEWEST = onnx.defs.onnx_opset_version()
CALLER = Location("/user/net.py")

GROUP_NORM = "(float[1,4,3] x, float[G] w) => (float[a,b,c] y) {y = GroupNormalization<num_groups=2>(x, w, w)}"
GRID_SAMPLE = '(float[1,1,3,3] x, float[1,2,2,2] g) => (float[a,b,c,d] y) {y = GridSample<mode="bilinear">(x, g)}'
DFT = "(float[1,4,2] x) => (float[a,b,c] y) {y = DFT<axis=1>(x)}"
TWO_NEW = "(float[3] x) => (float[a] y) {s = Gelu(x) y = Gelu(s)}"


def model_of(graph: str, *versions: int | None) -> ir.Model:
    """A model as translations record it: its nodes know the opset that they are made for, some of them."""
    graph = graph.replace("float[G]", "float[2]")
    model = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> main {graph}'))
    for node, version in zip(model.graph, versions, strict=True):
        node.version = version
    return model


def findings(stage: Callable[..., None], asked: int, *given: ir.Model) -> tuple[Diagnostic, ...]:
    request = Request(**{field.name: None for field in dataclasses.fields(Request)} | {"opset_version": asked, "callers": (CALLER,)})
    context = logs.context()
    try:
        with context.stage("build"):
            stage(context, *given, request)
    except ExportFailed as failed:
        return failed.findings
    return ()


@pytest.mark.parametrize(
    ("graph", "versions", "asked", "imported", "nodes"),
    [
        (GROUP_NORM, [18], 20, 20, ["GroupNormalization"]),
        (GROUP_NORM, [None], 20, 20, ["GroupNormalization"]),
        (GROUP_NORM, [18], 18, 18, ["GroupNormalization"]),
        (GROUP_NORM, [18], 15, 18, ["GroupNormalization"]),
        (GROUP_NORM, [21], 21, 21, ["GroupNormalization"]),
        (GRID_SAMPLE, [16], 19, 19, ["GridSample bilinear"]),
        (GRID_SAMPLE, [16], 20, 20, ["GridSample linear"]),
        (GRID_SAMPLE, [None], 22, 22, ["GridSample linear"]),
        (GRID_SAMPLE, [16], NEWEST, NEWEST, ["GridSample linear"]),
        (GRID_SAMPLE, [20], 20, 20, ["GridSample bilinear"]),
        (DFT, [17], 19, 19, ["DFT"]),
        (DFT, [17], 20, 20, ["Constant", "DFT"]),
        (DFT, [17], NEWEST, NEWEST, ["Constant", "DFT"]),
        (TWO_NEW, [20, 20], 20, 20, ["Gelu", "Gelu"]),
    ],
)
def test_the_opset_of_a_model(graph: str, versions: list[int | None], asked: int, imported: int, nodes: list[str]) -> None:
    model = model_of(graph, *versions)
    assert not findings(opset.bring_to, asked, model)
    assert dict(model.graph.opset_imports) == {"": imported}
    assert [
        " ".join([node.op_type, *(each.value for each in node.attributes.values() if each.name == "mode")]) for node in model.graph
    ] == nodes
    assert {node.version for node in model.graph} == {None}


@pytest.mark.parametrize("asked", [21, NEWEST])
def test_group_normalization_is_rewritten(asked: int) -> None:
    model = model_of(GROUP_NORM, 18)
    assert not findings(opset.bring_to, asked, model)
    # Since opset 21 it has a weight for each channel, not for each group.
    assert [node.op_type for node in model.graph][-1] == "GroupNormalization"
    assert len(model.graph) > 1
    onnx.checker.check_model(ir.to_proto(model))


def test_other_domains() -> None:
    model = model_of("(float[3] x) => (float[a] y) {s = my.First(x) t = my.Second(s) u = your.Third(t) y = Gelu(u)}", 3, 4, None, 20)
    assert not findings(opset.bring_to, 20, model)
    assert dict(model.graph.opset_imports) == {"": 20, "my": 3, "your": 1}
    assert model.graph[-1].version is None


def test_operators_that_are_too_new() -> None:
    found = findings(opset.bring_to, 17, model_of(TWO_NEW.replace("Gelu(s)", "Swish(s)"), 20, 24))
    assert [(each.rule.id, *each.rule.argument_texts()) for each in found] == [
        ("OXP3003", "onnx::Gelu", "20", "17"),
        ("OXP3003", "onnx::Swish", "24", "17"),
    ]
    assert [[fix.snippet for fix in each.fixes] for each in found] == [["opset_version=24"]] * 2
    assert {each.location for each in found} == {CALLER}


@pytest.mark.parametrize(("asked", "known"), [(-1, False), (0, False), (1, True), (NEWEST, True), (NEWEST + 1, False)])
def test_opsets_that_exist(asked: int, known: bool) -> None:
    found = findings(opset.check, asked)
    said = [(each.rule.id, *each.rule.argument_texts(), *(fix.snippet for fix in each.fixes)) for each in found]
    assert said == ([] if known else [("OXP5005", str(asked), onnx.__version__, str(NEWEST), "opset_version=20")])


@pytest.mark.parametrize(
    ("computed", "asked", "rule", "enough"),
    [("x", "99", "OXP5005", "20"), ("x.long() & 3", "17", "OXP3003", "18"), ("torch.fft.rfft(x).abs()", "13", "OXP3003", "17")],
)
def test_places(load: Callable[..., ModuleType], marked: Any, computed: str, asked: str, rule: str, enough: str) -> None:
    module = load(f"""
        import torch

        import onnxplain

        class Net(torch.nn.Module):
            def forward(self, x):
                return {computed}  # computed

        def export():
            return onnxplain.export(  # call
                Net(),
                (torch.ones(4),),
                opset_version={asked},  # asked
            )
    """)
    with pytest.raises(ExportFailed) as failed:
        module.export()
    found = [each for each in failed.value.findings if each.rule.id == rule]
    (line,), (called,) = marked("asked"), marked("computed" if rule == "OXP3003" else "call")
    assert {each.location.region.line for each in found} == {line}
    assert {each.region.line for finding in found for each in finding.related} == {called}
    assert {(edit.region.line, edit.replacement) for each in found for fix in each.fixes for edit in fix.edits} == {(line, enough)}
    assert {fix.snippet for each in found for fix in each.fixes} == {""}
