"""class: data-dependent value
stage: capture
thread: none
expect: error
rule: data-dependent-guard
fix: run all experts and choose with torch.where or index_select of the stacked outputs
"""

import torch


class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(4, 3)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def route(self, x):
        return self.gate(x).mean(0).argmax().item()

    def forward(self, x):
        return self.experts[self.route(x)](x)  # BLAME


def build():
    return Experts().eval(), (torch.randn(2, 4),), {}, {}
