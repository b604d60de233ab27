"""class: unsupported random operator
stage: dispatch
thread: none
expect: error
rule: no-onnx-function
fix: no Poisson in ONNX: make the noise an input
"""

import torch


class Shot(torch.nn.Module):
    def forward(self, light):
        return torch.poisson(light * 30) / 30  # BLAME


def build():
    return Shot().eval(), (torch.rand(2, 4),), {}, {}
