"""class: several warnings in one model
stage: capture
thread: none
expect: warning
rule: training-mode
fix: model.eval(), no noise, state as output
note: dropout in training mode, an assigned attribute, a buffer update, a random draw
"""

import torch


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x) * 0.1  # BLAME


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = Noise()
        self.drop = torch.nn.Dropout(0.5)
        self.fc = torch.nn.Linear(4, 4)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1  # BLAME
        x = self.drop(self.noise(x))  # BLAME
        self.last = self.fc(x)  # BLAME
        return self.last.relu()


def build():
    return Net().train(), (torch.randn(2, 4),), {}, {}
