"""class: numerical mismatch
stage: translation
thread: none
expect: error
rule: op-needs-static-dim
fix: sizes that divide by 3 only, or interpolate(mode="area") with fixed sizes
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AdaptiveAvgPool1d(3)

    def forward(self, x):
        return self.pool(x.relu())  # BLAME


def build():
    return Net().eval(), (torch.randn(1, 2, 9),), {}, {"dynamic_shapes": {"x": {2: torch.export.Dim("t", min=3, max=60)}}}


def second_inputs():
    return [((torch.randn(1, 2, 10),), {})]
