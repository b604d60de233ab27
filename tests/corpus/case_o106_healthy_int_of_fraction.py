"""class: int of a part of a size
stage: capture
thread: none
expect: ok
rule: none
fix: none
"""

import math

import torch


class Crop(torch.nn.Module):
    def forward(self, x):
        h = math.ceil(x.shape[2] / 4) * 4
        keep = int(x.shape[3] * 0.5)
        return torch.nn.functional.pad(x[..., :keep], (0, 0, 0, h - x.shape[2]))


def build():
    shapes = {"x": {2: torch.export.Dim("h", max=64), 3: torch.export.Dim("w", max=64)}}
    return Crop(), (torch.randn(1, 2, 10, 12),), {}, {"dynamic_shapes": shapes}


def second_inputs():
    return [((torch.randn(1, 2, 8, 20),), {}), ((torch.randn(1, 2, 13, 9),), {})]
