"""class: data-dependent control flow (several problems)
stage: capture
thread: none
expect: error
rule: data-dependent-branch
fix: torch.where for the first; the int of the count is a second problem
note: three problems on three lines
"""

import torch


def rescale(x):
    peak = x.abs().max()
    return x / peak if peak > 1 else x  # BLAME


class Pick(torch.nn.Module):
    def forward(self, x, flags):
        return [x * 2 for flag in flags if flag > 0]  # BLAME


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pick = Pick()

    def forward(self, x, flags):
        x = rescale(x)
        parts = self.pick(x, flags)
        return torch.special.bessel_j1(x) + sum(parts)  # BLAME


def build():
    return Net().eval(), (torch.randn(3), torch.tensor([1, 0, 1])), {}, {}
