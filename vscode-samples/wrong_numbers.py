"""An exported model that computes something else than the model in Python.

Look at the branch in `gelu`: only an export takes it. `--verify` compares the two models, and says by how much they differ and where.
"""

import torch


def gelu(x: torch.Tensor) -> torch.Tensor:
    """x times the share of a normal distribution that is below x."""
    if torch.compiler.is_exporting():
        return x * torch.sigmoid(1.702 * x)  # Good enough, somebody thought.
    return torch.nn.functional.gelu(x)


class Gate(torch.nn.Module):
    """Lets large values through, and holds small ones back."""

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return gelu(2 * signal)


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor]]:
    """The model and its example inputs."""
    return Gate().eval(), (torch.linspace(-2, 2, 16).reshape(2, 8),)
