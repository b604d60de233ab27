"""class: runtime check removed
stage: capture
thread: none
expect: ok
rule: runtime-check-removed
fix: none: the bound is what the model states; who deploys it has to keep it
"""

import torch


class Crop(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 4)
        return x * k


def build():
    return Crop().eval(), (torch.randn(6), torch.tensor(3)), {}, {}
