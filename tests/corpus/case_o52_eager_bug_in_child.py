"""class: the model fails in eager, too
stage: inputs
thread: none
expect: error
rule: eager-failure
fix: Linear(8, 2): the feature axis has 8 columns
"""

import torch


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(torch.cat([x, x.flip(-1)], -1))  # BLAME


def build():
    return torch.nn.Sequential(torch.nn.ReLU(), Head()).eval(), (torch.randn(2, 4),), {}, {}
