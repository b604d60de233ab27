"""class: data-dependent loop
stage: capture
thread: none
expect: error
rule: data-dependent-loop
fix: a mask over the longest length instead of a Python loop
"""

import torch


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 3)

    def forward(self, x, length):
        h = torch.zeros_like(x)
        for _ in range(int(length.max())):  # BLAME
            h = self.cell(x, h)
        return h


def build():
    return Decoder().eval(), (torch.randn(2, 3), torch.tensor([2, 4])), {}, {}
