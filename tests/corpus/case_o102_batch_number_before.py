"""class: number of the batch in an earlier line
stage: capture
thread: none
expect: error
rule: specialized-dim
fix: x.shape[0]
"""

import torch


class ClassToken(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.token = torch.nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x):
        token = self.token.expand(2, -1, -1)  # BLAME
        return torch.cat([token, x], dim=1)


def build():
    return ClassToken(), (torch.randn(2, 3, 4),), {}, {"dynamic_axes": {"x": {0: "batch"}}, "input_names": ["x"]}


def second_inputs():
    return [((torch.randn(5, 3, 4),), {})]
