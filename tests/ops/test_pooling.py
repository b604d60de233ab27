"""Pooling that ONNX cannot express is a finding, and no model with other results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import onnxplain


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": (2, 3), "stride": (2, 3), "padding": 1, "ceil_mode": True},
        {"kernel_size": 2, "stride": 2, "ceil_mode": True, "divisor_override": 3},
    ],
    ids=["rounds up along one dim", "another divisor"],
)
def test_pooling_without_a_translation(options: dict[str, Any]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(x, **options)

    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.ones(1, 1, 7, 6),))
    (finding,) = failed.value.findings
    assert finding.rule.id == "OXP3004"
    assert finding.location is not None
    assert finding.location.line == model.__code__.co_firstlineno + 1
