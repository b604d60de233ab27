"""class: range of a Dim
stage: inputs
thread: none
expect: error
rule: dynamic-shapes-mismatch
fix: widen the range, or pass a larger example
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()


def build():
    batch = torch.export.Dim("batch", min=4, max=16)  # BLAME
    return Model(), (torch.randn(2, 3),), {}, {"dynamic_shapes": {"x": {0: batch}}}
