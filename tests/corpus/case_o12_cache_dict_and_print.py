"""class: python side effects
stage: capture
thread: none
expect: warning
rule: python-side-effect
fix: return the features instead of writing them into a dict of the module; print happens once, at capture
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
        self.cache = {}

    def remember(self, name, value):
        self.cache[name] = value  # BLAME
        return value

    def forward(self, x):
        y = self.remember("fc", self.fc(x))
        return torch.relu(y)


def build():
    return Net().eval(), (torch.randn(2, 3),), {}, {}
