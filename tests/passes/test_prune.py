"""Run-time checks and unused nodes are removed, and nothing else."""

from __future__ import annotations

import pytest
import torch

import onnxplain
from onnxplain.rules import CheckDropped, CheckLeftOut


class Checked(torch.nn.Module):
    """Two checks, one of them on data, and a result that nobody uses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > 0).all())
        torch._assert_async((x < 9).all(), "too large")
        x.sin()
        return x.cos()


def test_checks_and_unused_nodes_are_removed() -> None:
    program = onnxplain.export(Checked(), (torch.ones(3),))
    assert [node.op_type for node in program.model.graph] == ["Cos"]
    assert [(each.rule.id, each.location and each.location.line) for each in program.diagnostics.findings] == [
        (CheckLeftOut.id, Checked.forward.__code__.co_firstlineno + line) for line in (1, 2)
    ]


class Joined(torch.nn.Module):
    """A number of elements from data that must be the size of an input: eager PyTorch broadcasts it where it is 1."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        chosen = x[x > 0]
        return chosen[: chosen.shape[0]] + y


class JoinedByItself(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        chosen = x[x]
        return chosen[: chosen.shape[0]] + y


@pytest.mark.parametrize(("model", "mask"), [(Joined(), torch.ones(3)), (JoinedByItself(), torch.ones(3).bool())])
def test_a_size_from_data_that_equals_an_inputs_is_told(model: torch.nn.Module, mask: torch.Tensor) -> None:
    program = onnxplain.export(model, (mask, torch.ones(3)), dynamic_shapes=({0: "rows"}, {0: "chosen"}))
    assert [(each.rule.id, each.location and each.location.line) for each in program.diagnostics.findings] == [
        (CheckDropped.id, model.forward.__code__.co_firstlineno + 2)
    ]


def test_a_log_has_the_graphs_before_and_after_the_passes() -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(lambda x: torch.linalg.eigvals(x.clone().relu_()).real, (torch.ones(3, 3),))
    graphs = {graph.name: graph.text for graph in failed.value.log.graphs}
    assert "aten.linalg_eigvals." in graphs["captured"]
    assert "aten.linalg_eig." in graphs["prepared"]
