"""class: activation checkpointing
stage: capture
thread: none
expect: ok
rule: -
fix: the block is inlined
"""

import torch
from torch.utils.checkpoint import checkpoint


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())

    def forward(self, x):
        with torch.no_grad():
            scale = x.norm(dim=-1, keepdim=True)
        return checkpoint(self.block, x / scale, use_reentrant=False)


def build():
    return Net().eval(), (torch.randn(2, 4),), {}, {}
