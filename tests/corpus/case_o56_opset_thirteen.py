"""class: opset too old
stage: serialization
thread: none
expect: error
rule: opset-downgrade-failed
fix: opset_version=18 or later
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x, i):
        return torch.nn.functional.grid_sample(x, i, align_corners=True)  # BLAME


def build():
    options = {"opset_version": 13}  # BLAME
    return Net().eval(), (torch.randn(1, 1, 4, 4), torch.rand(1, 2, 2, 2)), {}, options  # BLAME
