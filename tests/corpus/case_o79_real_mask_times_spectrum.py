"""class: complex tensors
stage: numerical
thread: none
expect: ok
rule: -
fix: a real factor of a complex tensor needs one more axis: (6,) becomes (6, 1)
"""

import torch


class Band(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(6))

    def forward(self, x):
        return (torch.fft.rfft(x) * self.gain).abs()


def build():
    return Band().eval(), (torch.randn(2, 10),), {}, {}
