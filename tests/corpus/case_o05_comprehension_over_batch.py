"""class: loop over a dynamic axis
stage: dynamic-shapes
thread: none
expect: error
rule: dim-specialized
fix: iterate not over the batch: self.norm(x) takes it whole
"""

import torch


class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x):
        return torch.stack([self.norm(row) for row in x])  # BLAME


def build():
    return Rows().eval(), (torch.randn(3, 4),), {}, {"dynamic_shapes": {"x": {0: "batch"}}}


def second_inputs():
    return [((torch.randn(6, 4),), {})]
