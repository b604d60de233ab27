"""State that a model keeps from one call to the next.

Look at the line that assigns `self.last`: nothing is kept between two runs of an ONNX model, so the exported one blends the first sample of
every chunk with the zeros of `__init__`. The export succeeds, with a warning.
"""

import torch


class Smoother(torch.nn.Module):
    """Blends each sample of a stream with the one before it; a stream comes in chunks."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(1, 4)

    def forward(self, chunk: torch.Tensor) -> torch.Tensor:
        before = torch.cat([self.last, chunk[:-1]])
        self.last = chunk[-1:]
        return (before + chunk) / 2


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor]]:
    """The model and a chunk of six samples."""
    return Smoother().eval(), (torch.randn(6, 4),)
