"""Normalization layers in training."""

from __future__ import annotations

import copy

import pytest
import torch
from parity import check
from torch import nn

import onnxplain


class Trained(nn.Module):
    """Its parameter has the name of a Python function, and its batch norm counts the batches in place."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.norm(input)
        assert self.norm.running_mean is not None
        assert self.norm.running_var is not None
        return result, self.norm.running_mean + 0, self.norm.running_var * 2


@pytest.mark.parametrize("batch", [3, torch.export.Dim.DYNAMIC])
def test_batch_norm_in_training(batch: object) -> None:
    x = torch.randn(3, 8, 6)
    shapes = ({0: batch},) if batch != 3 else None
    program = onnxplain.export(copy.deepcopy(Trained()), (x,), dynamic_shapes=shapes)
    assert {each.rule.id for each in program.diagnostics.findings} == {"OXP1007"}
    check(Trained(), program, ((x * 2 + 1).repeat(1 if batch == 3 else 2, 1, 1),))


@pytest.mark.parametrize(("keeps", "rules"), [(True, ["OXP1007"]), (False, [])])
def test_an_instance_norm_in_training_differs_only_if_it_keeps_statistics(keeps: bool, rules: list[str]) -> None:
    model = torch.nn.Sequential(torch.nn.InstanceNorm1d(6, track_running_stats=keeps)).train()
    program = onnxplain.export(model, (torch.randn(3, 6, 8),))
    assert [finding.rule.id for finding in program.diagnostics.findings] == rules
