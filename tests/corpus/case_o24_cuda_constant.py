"""class: device unavailable
stage: capture
thread: none
expect: error
rule: device-unavailable
fix: torch.arange(..., device=x.device)
"""

import torch


def positions(n):
    return torch.arange(n, device="cuda")  # BLAME


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(16, 4)

    def forward(self, x):
        return x + self.emb(positions(x.shape[1]))


def build():
    return Net().eval(), (torch.randn(2, 5, 4),), {}, {}
