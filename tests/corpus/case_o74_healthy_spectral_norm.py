"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: the parametrization computes the weight; in eval its buffers stay
"""

import torch
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = spectral_norm(torch.nn.Linear(4, 4))
        self.b = weight_norm(torch.nn.Conv1d(2, 2, 3))

    def forward(self, x):
        return self.b(self.a(x).unflatten(-1, (1, 4)).expand(-1, 2, -1))


def build():
    return Net().eval(), (torch.randn(3, 4),), {}, {}
