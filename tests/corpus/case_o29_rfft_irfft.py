"""class: fft
stage: numerical
thread: none
expect: ok
rule: -
fix: rfft and irfft are DFT in ONNX
"""

import torch


class Lowpass(torch.nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.keep = keep

    def forward(self, x):
        spectrum = torch.fft.rfft(x, norm="ortho")
        mask = (torch.arange(spectrum.shape[-1]) < self.keep).to(x.dtype)
        return torch.fft.irfft(spectrum * mask, n=x.shape[-1], norm="ortho")


def build():
    return Lowpass(3).eval(), (torch.randn(2, 10),), {}, {}


def second_inputs():
    return [((torch.randn(2, 10),), {})]
