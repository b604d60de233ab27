"""class: trace specialization on a shape
stage: dynamic-shapes
thread: none
expect: error
rule: dim-specialized
fix: torch.arange(n) * (2 / (n - 1)) - 1: steps of linspace must be a number
"""

import torch


def ramp(n):
    return torch.linspace(-1, 1, n)  # BLAME


class Coords(torch.nn.Module):
    def forward(self, x):
        return x + ramp(x.shape[-1])


def build():
    return Coords().eval(), (torch.randn(2, 5),), {}, {"dynamic_shapes": {"x": {1: "width"}}}


def second_inputs():
    return [((torch.randn(2, 9),), {})]
