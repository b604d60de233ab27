"""class: name collisions
stage: serialization
thread: none
expect: warning
rule: duplicate-io-name
fix: other names: "x" is both the first input and an output
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x, h):  # BLAME
        h = torch.tanh(x + h)
        return h * 2, h  # BLAME


def build():
    names = {"input_names": ["x", "h"], "output_names": ["y", "h"]}  # BLAME
    return Net().eval(), (torch.randn(2, 3), torch.randn(2, 3)), {}, names  # BLAME
