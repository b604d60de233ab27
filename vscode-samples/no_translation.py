"""An operator that ONNX does not have, in a helper that two modules call.

Look at `poses.py`: `torch.linalg.eigvals` has no translation. That is one finding at one line, with both modules that need it.
"""

import torch
from poses import undo


class View(torch.nn.Module):
    """Embeds the points of one camera."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Linear(2, 4)

    def forward(self, points: torch.Tensor, pose: torch.Tensor) -> torch.Tensor:
        return self.embed(undo(points, pose))


class Matcher(torch.nn.Module):
    """How well the points of two cameras match."""

    def __init__(self) -> None:
        super().__init__()
        self.left = View()
        self.right = View()

    def forward(self, left: torch.Tensor, right: torch.Tensor, pose: torch.Tensor) -> torch.Tensor:
        return (self.left(left, pose) * self.right(right, pose)).sum(-1)


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The model, sixteen points of each camera, and the pose between them."""
    return Matcher().eval(), (torch.randn(16, 2), torch.randn(16, 2), torch.eye(2))
