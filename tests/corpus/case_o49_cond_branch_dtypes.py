"""class: control-flow operator
stage: capture
thread: none
expect: error
rule: cond-branch-mismatch
fix: both branches float32: (x > 0).float()
"""

import torch


class Gate(torch.nn.Module):
    def hot(self, x):
        return x * 2

    def cold(self, x):
        return (x > 0).to(torch.int64)

    def forward(self, x):
        return torch.cond(x.mean() > 0, self.hot, self.cold, (x,))  # BLAME


def build():
    return Gate().eval(), (torch.randn(4),), {}, {}
