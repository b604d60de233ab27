"""class: wrong names
stage: inputs
thread: none
expect: warning
rule: io-names-count
fix: three names given, two outputs: None is no output
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x):  # BLAME
        return x * 2, None, x.sum()  # BLAME


def build():
    names = {"output_names": ["double", "cache", "total"]}  # BLAME
    return Net().eval(), (torch.randn(2, 3),), {}, names  # BLAME
