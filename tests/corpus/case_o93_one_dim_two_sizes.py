"""class: one Dim for two sizes
stage: inputs
thread: none
expect: error
rule: dynamic-shapes-mismatch
fix: two Dims
"""

import torch


class Cross(torch.nn.Module):
    def forward(self, q, k):
        return q @ k.transpose(1, 2)


def build():
    seq = torch.export.Dim("seq")
    shapes = {"q": {1: seq}, "k": {1: seq}}  # BLAME
    return Cross(), (torch.randn(1, 3, 4), torch.randn(1, 5, 4)), {}, {"dynamic_shapes": shapes}
