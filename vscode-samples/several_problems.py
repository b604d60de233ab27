"""Three problems in two files, found in one run.

Look here for a loop whose length is data, and in `tracking.py` for a branch on data and a `reshape` to the size of the example. None of
them hides another, and each comes with an edit that `onnxplain fix` applies.
"""

from typing import Any

import torch
from tracking import Heads, inside


class Tracker(torch.nn.Module):
    """Features of points, which fade with the number of steps since they were seen."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = Heads()

    def forward(self, points: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        features = self.heads(inside(points))
        for _ in range(int(steps)):
            features = features * 0.5
        return features.sum(1)


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor, torch.Tensor], dict[str, Any], dict[str, Any]]:
    """The model, five points, three steps, no keyword inputs, and any number of points."""
    points = torch.linspace(-2, 2, 10).view(5, 2)
    return Tracker().eval(), (points, torch.tensor(3)), {}, {"points": {0: torch.export.Dim("count")}, "steps": None}
