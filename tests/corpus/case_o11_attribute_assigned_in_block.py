"""class: module state mutated
stage: capture
thread: none
expect: warning
rule: attribute-mutation
fix: return the attention weights instead of keeping them on the module
"""

import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = torch.nn.Linear(4, 8)
        self.weights = None

    def forward(self, x):
        q, k = self.qk(x).chunk(2, -1)
        self.weights = (q @ k.transpose(-1, -2)).softmax(-1)  # BLAME
        return self.weights @ x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Attention() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def build():
    return Net().eval(), (torch.randn(1, 3, 4),), {}, {}
