"""Code that torch generates from graphs: deferred, it is what torch would have generated at once."""

from __future__ import annotations

import copy

import torch

from onnxplain.torch_internals import generated_code


def _doubled() -> torch.fx.Graph:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.add, (x, x)))
    return graph


def test_a_deferred_module_computes_and_shows_its_code() -> None:
    at_once = torch.fx.GraphModule({}, _doubled())
    with generated_code.deferred():
        called, read = torch.fx.GraphModule({}, _doubled()), torch.fx.GraphModule({}, _doubled())
    assert "_code" not in vars(called)
    assert called(torch.ones(2)).tolist() == [2, 2]
    assert read.code == called.code == at_once.code
    assert read(torch.ones(2)).tolist() == [2, 2]


def test_a_change_after_the_code_was_read_is_deferred_as_well() -> None:
    module = torch.fx.GraphModule({}, _doubled())
    assert module(torch.ones(2)).tolist() == [2, 2]
    with generated_code.deferred():
        next(node for node in module.graph.nodes if node.op == "call_function").target = torch.mul
        module.recompile()
    assert module(torch.ones(2)).tolist() == [1, 1]
    assert "mul" in module.code


def test_a_deferred_module_can_be_copied() -> None:
    with generated_code.deferred():
        copied = copy.deepcopy(torch.fx.GraphModule({}, _doubled()))
    assert copied(torch.ones(2)).tolist() == [2, 2]
    assert copy.deepcopy(copied)(torch.ones(2)).tolist() == [2, 2]
