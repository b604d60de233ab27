"""A healthy model: it exports without a finding."""

from typing import Any

import torch


class Classifier(torch.nn.Module):
    """Two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(8, 16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(features)))


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor], dict[str, Any], dict[str, Any]]:
    """The model, its example inputs, no keyword inputs, and a batch of any size."""
    return Classifier().eval(), (torch.randn(2, 8),), {}, {"features": {0: torch.export.Dim("batch")}}
