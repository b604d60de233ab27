"""Graphs as text: a line for each node, and the line of each node."""

from __future__ import annotations

import inspect

import torch

import onnxplain
from onnxplain import graph_views
from onnxplain.diagnostics import GraphText
from onnxplain.request import DimNames

UNNAMED = DimNames()


class Branches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.add(x, self.weight, alpha=2)
        return torch.cond(y.sum() > 0, lambda z: z.sin(), lambda z: z.cos(), (y,))  # type: ignore[no-any-return]


def line(graph: GraphText, node: str) -> str:
    return graph.text.splitlines()[graph.nodes[node][0] - 1]


def test_every_fx_node_has_a_line() -> None:
    program = torch.export.export(Branches(), (torch.ones(2, 3),))
    graph = graph_views.of_fx("captured", program.graph_module, UNNAMED)
    names = {node.name for module in (program.graph_module, *program.graph_module.children()) for node in module.graph.nodes}
    assert graph.name == "captured"
    assert graph.nodes.keys() == names
    assert all(line(graph, name).startswith((f"{name}: ", f"{name} = ", "return ")) for name in names)
    assert line(graph, "x") == "x: float32[2, 3] = input x"
    assert line(graph, "add").startswith("add: float32[2, 3] = aten.add.Tensor(x, p_weight, alpha=2)")
    number = inspect.getsourcelines(Branches.forward)[1] + 1
    assert line(graph, "add").endswith(f"# test_listings.py:{number}")
    assert line(graph, "sin").startswith("sin: float32[2, 3] = aten.sin.default(")
    heads = [each for each in graph.text.splitlines() if each.startswith("#")]
    assert len(heads) == 3
    assert graph.text.endswith("\n")


def test_onnx_nodes_are_found_by_the_fx_nodes_that_they_come_from() -> None:
    program = onnxplain.export(Branches(), (torch.ones(2, 3),))
    graph = graph_views.of_onnx("onnx", program.model)
    assert len(graph.text.splitlines()) == 1 + sum(1 for _ in program.model.graph.all_nodes())
    for name, kind in (("sin", "Sin"), ("cos", "Cos"), ("add", "Add")):
        assert f"= {kind}(" in line(graph, name)
        assert kind in graph.nodes[name][1]
    assert "FLOAT" in line(graph, "sin")


class Long(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(*range(x.ndim)).reshape([1] * 120)


def test_lines_have_a_limit_and_no_line_breaks() -> None:
    program = torch.export.export(Long(), (torch.ones(1),))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    node.args = (*node.args, "first\nsecond # third")
    graph = graph_views.of_fx("captured", program.graph_module, UNNAMED)
    assert "first second # third" in graph.text
    lengths = [len(each) for each in graph.text.splitlines()]
    assert max(lengths) == 300
    assert len(lengths) == 1 + len(program.graph.nodes)
    exact = graph.text.splitlines()[lengths.index(300)]
    assert exact.endswith("...")


def test_modules_that_are_no_graphs_are_left_out() -> None:
    module = torch.export.export(Branches(), (torch.ones(2, 3),)).graph_module
    module._modules = {"plain": torch.nn.Identity(), **module._modules}
    assert "sin" in graph_views.of_fx("captured", module, UNNAMED).nodes


class Parts(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.chunk(self.count)[0]


def test_long_lists_of_results_are_cut() -> None:
    shown = {}
    for count in range(1, 12):
        program = torch.export.export(Parts(count), (torch.ones(count),))
        shown[count] = line(graph_views.of_fx("captured", program.graph_module, UNNAMED), "chunk").partition(" = ")[0]
    cut = [count for count, text in shown.items() if "..." in text]
    assert cut == list(range(cut[0], 12))
    assert cut[0] > 2
    # The first list that is cut shows as many as the last that is not.
    assert shown[cut[0]].count("float32[1]") == cut[0] - 1
