"""class: higher-order operators
stage: dispatch
thread: none
expect: ok
rule: -
fix: none: 4 steps unroll into slices
"""

import torch
from torch._higher_order_ops.associative_scan import associative_scan


def combine(left, right):
    return left * right + 1.0


class Scan(torch.nn.Module):
    def forward(self, x):
        return associative_scan(combine, x, dim=0, combine_mode="generic")


def build():
    return Scan().eval(), (torch.randn(4, 2),), {}, {}
