"""class: complex in the signature
stage: build
thread: none
expect: warning
rule: complex-as-real-signature
fix: take and return view_as_real tensors: the ONNX input has one more axis of size 2
"""

import torch


class Filter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(8))

    def forward(self, spectrum):  # BLAME
        return spectrum * self.gain  # BLAME


def build():
    return Filter().eval(), (torch.randn(2, 8, dtype=torch.complex64),), {}, {}
