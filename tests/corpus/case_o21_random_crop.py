"""class: nondeterministic operators
stage: capture
thread: none
expect: warning
rule: nondeterministic-op
fix: no shuffling at inference, or the permutation as an input
"""

import torch


class Mix(torch.nn.Module):
    def forward(self, x):
        order = torch.argsort(torch.rand(x.shape[0]))  # BLAME
        return 0.5 * x + 0.5 * x[order]


def build():
    return Mix().eval(), (torch.randn(4, 3),), {}, {}
