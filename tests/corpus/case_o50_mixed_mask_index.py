"""class: unbacked size
stage: capture
thread: none
expect: error
rule: unbacked-symbol-lost
fix: rows = mask.nonzero().squeeze(1), then index with integers
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x, mask, column):
        picked = x[mask, column]  # BLAME
        return picked.sum()


def build():
    return Net().eval(), (torch.randn(4, 5), torch.tensor([True, False, True, False]), torch.tensor([1, 2])), {}, {}
