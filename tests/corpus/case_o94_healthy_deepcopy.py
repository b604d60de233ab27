"""class: copy.deepcopy in forward
stage: capture
thread: none
expect: ok
rule: none
fix: none needed
"""

import copy

import torch


class Slots(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.template = {"mean": torch.zeros(4), "scale": torch.ones(4)}

    def forward(self, x):
        state = copy.deepcopy(self.template)
        state["mean"] = state["mean"] + x.mean(0)
        return (x - state["mean"]) * state["scale"]


def build():
    return Slots(), (torch.randn(3, 4),), {}, {}
