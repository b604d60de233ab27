"""class: several problems of different kinds
stage: capture
thread: none
expect: error
rule: dim-specialized
fix: no int() of a size; math.floor of a mean is data
note: a fixed batch, a Python number from data, a random draw, all in one model
"""

import math
import random

import torch


class Augment(torch.nn.Module):
    def forward(self, x):
        return x * random.uniform(0.9, 1.1)  # BLAME


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.augment = Augment()

    def width(self, x):
        return torch.zeros(int(x.shape[0]), 2)  # BLAME

    def forward(self, x):
        x = self.augment(x)
        k = math.floor(x.mean().item())
        if k > 3:  # BLAME
            x = x + 1
        return torch.cat([x, self.width(x)], -1)


def build():
    return Net().eval(), (torch.randn(2, 3),), {}, {"dynamic_shapes": {"x": {0: "batch"}}}
