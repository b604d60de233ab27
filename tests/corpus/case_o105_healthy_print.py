"""class: print in forward
stage: capture
thread: none
expect: ok
rule: none
fix: none needed: TorchDynamo leaves the print out
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        print(f"mean {y.mean().item():.3f}")  # noqa: T201
        return y.relu()


def build():
    return Net().eval(), (torch.randn(2, 4),), {}, {}
