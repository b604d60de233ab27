"""class: dtype the runtime lacks
stage: runtime-load
thread: none
expect: warning
rule: runtime-dtype-unsupported
fix: export in float32: ORT has no ConvTranspose for double
"""

import torch


class Up(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.ConvTranspose1d(2, 2, 4, stride=2)

    def forward(self, x):
        return self.up(x.relu())  # BLAME


def build():
    return Up().double().eval(), (torch.randn(1, 2, 5, dtype=torch.float64),), {}, {}
