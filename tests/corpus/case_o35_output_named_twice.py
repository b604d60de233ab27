"""class: name collisions
stage: serialization
thread: none
expect: warning
rule: duplicate-io-name
fix: two outputs are named "score"
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x):  # BLAME
        return x.mean(1), x.amax(1)  # BLAME


def build():
    names = {"output_names": ["score", "score"]}  # BLAME
    return Net().eval(), (torch.randn(2, 3),), {}, names  # BLAME
