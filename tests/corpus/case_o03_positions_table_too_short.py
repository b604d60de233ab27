"""class: dynamic shape constraint
stage: dynamic-shapes
thread: none
expect: warning
rule: dim-range
fix: Dim("seq", max=32): the table of positions has 32 rows
"""

import torch


class Positions(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(rows, 6))

    def forward(self, x):
        return x + self.table[: x.shape[1]]  # BLAME


def build():
    net = torch.nn.Sequential(torch.nn.Linear(6, 6), Positions(32))
    return net.eval(), (torch.randn(2, 7, 6),), {}, {"dynamic_shapes": ({1: torch.export.Dim("seq", min=2, max=512)},)}


def second_inputs():
    return [((torch.randn(2, 30, 6),), {})]
