"""A model that was left in training mode.

Look at `build`: nothing calls `eval()`, so the Dropout layer of `forward` is still active. The export succeeds, with a warning.
"""

import torch


class Classifier(torch.nn.Module):
    """Two layers with Dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(8, 16)
        self.dropout = torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.hidden(features))
        return self.head(self.dropout(hidden))


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor]]:
    """The model and its example inputs."""
    model = Classifier()
    return model, (torch.randn(2, 8),)
