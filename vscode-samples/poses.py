"""A helper of `no_translation.py`."""

import torch


def undo(points: torch.Tensor, pose: torch.Tensor) -> torch.Tensor:
    """The points without the scale of the 2 x 2 matrix `pose`, the largest absolute value of its eigenvalues."""
    return points / torch.linalg.eigvals(pose).abs().max()
