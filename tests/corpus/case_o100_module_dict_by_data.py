"""class: ModuleDict by data
stage: capture
thread: none
expect: error
rule: data-dependent-value
fix: run all modules and select
"""

import torch


class Classes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = torch.nn.ModuleDict({"0": torch.nn.Linear(4, 2), "1": torch.nn.Linear(4, 2)})

    def forward(self, x, task):
        return self.heads[str(task.item())](x)  # BLAME


def build():
    return Classes().eval(), (torch.randn(3, 4), torch.tensor(1)), {}, {}
