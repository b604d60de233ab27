"""class: unsupported operator
stage: dispatch
thread: none
expect: error
rule: no-onnx-function
fix: no ONNX form of the incomplete gamma function
"""

import torch


class Apply(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x)


def chi2(x):
    return torch.special.gammainc(torch.full_like(x, 1.5), x / 2)  # BLAME


def build():
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Softplus(), Apply(chi2)).eval(), (torch.rand(2, 3),), {}, {}
