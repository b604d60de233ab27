"""class: complex tensors
stage: dispatch
thread: none
expect: error
rule: complex-unsupported
fix: work with real and imaginary parts; the value becomes complex in fft
"""

import torch


class Cepstrum(torch.nn.Module):
    def forward(self, x):
        spectrum = torch.fft.fft(x)
        logs = torch.log(spectrum)  # BLAME
        return torch.fft.ifft(logs).real


def build():
    return Cepstrum().eval(), (torch.rand(2, 8) + 1,), {}, {}
