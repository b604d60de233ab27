"""Checks of a captured program also look into its inner graphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxplain


class DrawsWithoutGradients(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            noise = torch.randn_like(x)
        return x + noise


class Samples(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.distributions.Normal(0.0, 1.0).sample(x.shape)


@pytest.mark.parametrize(("model", "line"), [(DrawsWithoutGradients(), "randn_like(x)"), (Samples(), ".sample(x.shape)")])
def test_draws_within_no_grad(model: torch.nn.Module, line: str) -> None:
    findings = onnxplain.export(model, (torch.ones(2, 3),)).diagnostics.findings
    assert [finding.rule.id for finding in findings] == ["OXP1015"]
    assert findings[0].location is not None
    assert line in findings[0].location.snippet


@pytest.mark.parametrize(
    ("squeezed", "checks"),
    [
        (lambda x: (x > 0).nonzero().squeeze(), ["shape[0] != 1"]),
        (lambda x: (x > 0).nonzero().squeeze(1), []),
        (lambda x: (x > 0).nonzero().squeeze(0), ["shape[0] != 1"]),
        (lambda x: (x > 0).nonzero().squeeze((0, 1)), ["shape[0] != 1"]),
        (lambda x: x[x > 0].squeeze(), ["shape[0] != 1"]),
        (lambda x: x.sum().squeeze(), []),
        (lambda x: x[None].squeeze(0), []),
    ],
)
def test_a_squeeze_of_a_size_from_data(squeezed: Callable[[torch.Tensor], torch.Tensor], checks: list[str]) -> None:
    findings = onnxplain.export(squeezed, (torch.ones(5),)).diagnostics.findings
    assert [finding.rule.id for finding in findings] == ["OXP1023"] * len(checks)
    assert [vars(finding.rule)["check"] for finding in findings] == checks
