"""class: TorchScript model
stage: inputs
thread: none
expect: error
rule: script-model
fix: export the eager module Scorer() instead
"""

import torch


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc(x))


def build():
    model = torch.jit.trace(Scorer().eval(), (torch.randn(2, 3),))  # BLAME
    return model, (torch.randn(2, 3),), {}, {}  # BLAME
