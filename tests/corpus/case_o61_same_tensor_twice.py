"""class: aliased example inputs
stage: inputs
thread: none
expect: ok
rule: -
fix: the inputs stay two
"""

import torch


class Distance(torch.nn.Module):
    def forward(self, query, key):
        return (query - 2 * key).pow(2).sum(-1)


def build():
    t = torch.randn(2, 3)
    return Distance().eval(), (t,), {"key": t}, {}


def second_inputs():
    return [((torch.randn(2, 3),), {"key": torch.randn(2, 3)})]
