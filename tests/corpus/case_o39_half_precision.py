"""class: half precision
stage: runtime-load
thread: none
expect: ok
rule: -
fix: none
"""

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def build():
    return Block().half().eval(), (torch.randn(2, 8, dtype=torch.float16),), {}, {}
