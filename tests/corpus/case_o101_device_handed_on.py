"""class: device as an argument of a helper
stage: capture
thread: none
expect: error
rule: device-mismatch
fix: pass x.device
"""

import torch


def sinusoid(length, dim, device):
    position = torch.arange(length, device=device)[:, None]
    return torch.sin(position * torch.arange(dim, device=device))


class Positions(torch.nn.Module):
    def forward(self, x):
        return x + sinusoid(x.shape[1], x.shape[2], "cuda")  # BLAME


def build():
    return Positions(), (torch.randn(1, 3, 4),), {}, {}
