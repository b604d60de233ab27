"""class: input mutation
stage: passes
thread: none
expect: warning
rule: input-mutation-dropped
fix: return the updated cache
"""

import torch


def write(cache, x, at):
    cache[:, at] = x  # BLAME
    return cache.sum(1)


class Step(torch.nn.Module):
    def forward(self, x, cache):
        y = write(cache, x, 1)
        x.mul_(0.5)  # BLAME
        return x + y


def build():
    return Step().eval(), (torch.randn(2, 3), torch.zeros(2, 4, 3)), {}, {}
