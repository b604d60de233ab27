"""class: buffer mutation
stage: passes
thread: none
expect: warning
rule: buffer-mutation-dropped
fix: make the statistics an input and an output
"""

import torch


class Normalizer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("count", torch.tensor(0))

    def update(self, x):
        self.count += 1  # BLAME
        self.mean.copy_(self.mean * 0.9 + x.mean(0) * 0.1)  # BLAME

    def forward(self, x):
        self.update(x)
        return x - self.mean


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Normalizer(3)
        self.fc = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(self.norm(x))


def build():
    return Net().eval(), (torch.randn(4, 3),), {}, {}
