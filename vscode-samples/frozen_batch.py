"""A batch size that is a number in the code, though it was asked to be dynamic.

Look at the `reshape` of `forward`: its 4 is the batch size of the example in `build`, and no other batch fits.
"""

from typing import Any

import torch


class Patches(torch.nn.Module):
    """Cuts images into 16 patches and embeds each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Conv2d(3, 32, kernel_size=4, stride=4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        patches = self.embed(images)
        return patches.reshape(4, 32, 16).transpose(1, 2)


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor], dict[str, Any], dict[str, Any]]:
    """The model, four images of 16 x 16 pixels, no keyword inputs, and a batch of any size."""
    return Patches().eval(), (torch.randn(4, 3, 16, 16),), {}, {"images": {0: torch.export.Dim("batch")}}
