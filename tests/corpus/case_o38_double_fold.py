"""class: dtype the runtime lacks
stage: runtime-load
thread: none
expect: warning
rule: runtime-dtype-unsupported
fix: export in float32: ORT has no Col2Im for double
"""

import torch


class Fold(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fold = torch.nn.Fold((4, 5), (2, 2))

    def forward(self, x):
        return self.fold(x.relu())  # BLAME


def build():
    return Fold().double().eval(), (torch.randn(1, 8, 12, dtype=torch.float64),), {}, {}
