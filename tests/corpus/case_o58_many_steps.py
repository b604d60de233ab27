"""class: memory / size
stage: capture
thread: none
expect: note
rule: loop-unrolled
fix: torch scan: 300 steps are unrolled
"""

import torch


class Leaky(torch.nn.Module):
    def step(self, v, i):
        return v * 0.9 + i  # BLAME

    def forward(self, x):
        v = torch.zeros_like(x[0])
        for t in range(x.shape[0]):
            v = self.step(v, x[t])  # BLAME
        return v


def build():
    return Leaky().eval(), (torch.randn(300, 2),), {}, {}
