"""class: data-dependent guard
stage: capture
thread: none
expect: error
rule: data-dependent-guard
fix: torch._check(n <= x.shape[0]) before the slice is compared
"""

import torch


class Trim(torch.nn.Module):
    def length(self, mask):
        return mask.sum().item()

    def forward(self, x, mask):
        n = self.length(mask)
        short = x[:n]
        if short.shape[0] > 2:  # BLAME
            short = short[1:]
        return short * 2


def build():
    return Trim().eval(), (torch.randn(6, 2), torch.tensor([1, 1, 1, 1, 0, 0])), {}, {}
