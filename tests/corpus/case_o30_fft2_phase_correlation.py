"""class: fft
stage: numerical
thread: none
expect: ok
rule: -
fix: fft2 is a DFT per axis; conj and division by abs are real arithmetic
"""

import torch


class Correlate(torch.nn.Module):
    def forward(self, a, b):
        cross = torch.fft.fft2(a) * torch.fft.fft2(b).conj()
        cross = cross / (cross.abs() + 1e-6)
        return torch.fft.ifft2(cross).real


def build():
    return Correlate().eval(), (torch.randn(1, 4, 6), torch.randn(1, 4, 6)), {}, {}
