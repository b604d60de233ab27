"""class: trace specialization on a shape
stage: dynamic-shapes
thread: none
expect: error
rule: dim-specialized
fix: view(x.shape[0], self.heads, -1): the literal 2 in view is the batch of the example
"""

import torch


class Heads(torch.nn.Module):
    heads = 4

    def split(self, x):
        return x.view(2, self.heads, 2)  # BLAME


class Net(Heads):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.split(self.fc(x)).sum(1)


def build():
    return Net().eval(), (torch.randn(2, 8),), {}, {"dynamic_shapes": {"x": {0: torch.export.Dim("batch", min=1, max=32)}}}


def second_inputs():
    return [((torch.randn(5, 8),), {})]
