"""class: dict as the last positional argument
stage: inputs
thread: none
expect: ok
rule: -
fix: just work: the dict is an input, no kwargs
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x, extras):
        return x * extras["scale"] + extras["shift"]


def build():
    return Net().eval(), (torch.randn(2, 3), {"scale": torch.randn(3), "shift": torch.randn(3)}), {}, {}


def second_inputs():
    return [((torch.randn(2, 3), {"scale": torch.zeros(3), "shift": torch.ones(3)}), {})]
