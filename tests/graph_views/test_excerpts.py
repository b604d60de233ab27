"""The graph around a node: its content and its size. It costs nothing if there are no findings."""

from __future__ import annotations

import pathlib
import runpy
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain import graph_views
from onnxplain.diagnostics import Graph, Rule
from onnxplain.request import DimNames
from onnxplain.rules import TranslationFailed, TranslationWrong, UnsupportedOperator, UnsupportedOverload

UNNAMED = DimNames()


def graph_around(model: torch.nn.Module, args: tuple[Any, ...], operator: str) -> Graph:
    program = torch.export.export(model, args)
    return graph_views.around(next(node for node in program.graph.nodes if str(node.target) == operator), UNNAMED)


class Chain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.neg().abs().relu().exp().sin().cos().floor()


class Wide(torch.nn.Module):
    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        joined = torch.cat(inputs)
        return [joined + number for number in range(30)]


class Woven(torch.nn.Module):
    """Eight inputs of a node with inputs, and eight users of it with users."""

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        joined = torch.cat([each.neg() for each in inputs])
        return [(joined + number).sin() for number in range(8)]


def test_two_levels_each_way() -> None:
    graph = graph_around(Chain(), (torch.ones(2, 3),), "aten.exp.default")
    assert [(node.id, node.label, node.value) for node in graph.nodes] == [
        ("exp", "aten.exp.default", "float32[2, 3]"),
        ("relu", "aten.relu.default", "float32[2, 3]"),
        ("sin", "aten.sin.default", "float32[2, 3]"),
        ("abs_1", "aten.abs.default", "float32[2, 3]"),
        ("cos", "aten.cos.default", "float32[2, 3]"),
        ("(above)", "...", ""),
        ("(below)", "...", ""),
    ]
    edges = [("relu", "exp"), ("abs_1", "relu"), ("exp", "sin"), ("sin", "cos"), ("(above)", "abs_1"), ("cos", "(below)")]
    assert sorted(graph.edges) == sorted(edges)
    assert graph.blamed == "exp"


def test_a_wide_graph_is_cut() -> None:
    graph = graph_around(Wide(), tuple(torch.ones(1) for _ in range(30)), "aten.cat.default")
    labels = [node.label for node in graph.nodes]
    assert len(labels) <= 12
    assert (labels.count("input"), labels.count("...")) == (4, 2)
    assert {id for edge in graph.edges for id in edge} == {node.id for node in graph.nodes}


@pytest.mark.parametrize(("count", "shown"), [(8, [4, 2, 2, 1]), (1, [1, 5, 1, 2])])
def test_how_many_nodes_of_each_level_are_shown(count: int, shown: list[int]) -> None:
    graph = graph_around(Woven(), tuple(torch.ones(1) for _ in range(count)), "aten.cat.default")
    labels = [node.label for node in graph.nodes]
    assert [labels.count(each) for each in ("aten.neg.default", "aten.add.Tensor", "input", "aten.sin.default")] == shown


def test_several_results_and_dynamic_dims() -> None:
    class Parts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.split(x, 1)[0] + x.shape[1]

    program = torch.export.export(Parts(), (torch.ones(4, 3),), dynamic_shapes=({1: torch.export.Dim.DYNAMIC},))
    node = next(node for node in program.graph.nodes if "split" in str(node.target))
    values = {each.id: each.value for each in graph_views.around(node, UNNAMED).nodes}
    size = str(program.graph.find_nodes(op="placeholder")[0].meta["val"].shape[1])
    assert values["x"] == f"float32[4, {size}]"
    assert values[node.name] == ", ".join([f"float32[1, {size}]"] * 3 + ["..."])


@pytest.mark.parametrize("rule", [UnsupportedOperator, UnsupportedOverload, TranslationFailed, TranslationWrong])
def test_findings_on_a_node_have_a_picture(rule: type[Rule], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(rule.page.failing, encoding="utf-8")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        runpy.run_path(str(path))
    (finding,) = failed.value.findings
    assert finding.rule.id == rule.id
    assert finding.graph is not None
    assert finding.graph.blamed in [node.id for node in finding.graph.nodes]


def test_a_clean_export_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(node: torch.fx.Node, dim_names: DimNames) -> Graph:
        raise AssertionError(f"a picture of {node}")

    monkeypatch.setattr(graph_views, "around", refuse)
    onnxplain.export(Chain(), (torch.ones(2, 3),), verify=True)
