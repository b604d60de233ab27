"""class: host value baked
stage: capture
thread: none
expect: ok
rule: -
fix: a Python float from a tensor stays in the graph
"""

import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = torch.nn.Parameter(torch.tensor(0.3))

    def forward(self, x, bias):
        return x * self.log_scale.exp() + bias.item()


def build():
    return Scale().eval(), (torch.randn(3), torch.tensor(1.5)), {}, {}


def second_inputs():
    return [((torch.randn(3), torch.tensor(-2.5)), {})]
