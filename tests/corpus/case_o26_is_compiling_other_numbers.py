"""class: export-only branch
stage: numerical
thread: none
expect: error
rule: export-only-branch
fix: use the same formula in both branches: the export takes the one for compilers
"""

import torch


def fast_gelu(x):
    if torch.compiler.is_compiling():  # BLAME
        return x * torch.sigmoid(1.702 * x)
    return torch.nn.functional.gelu(x)  # BLAME


class Net(torch.nn.Module):
    def forward(self, x):
        return fast_gelu(x * 3)


def build():
    return Net().eval(), (torch.linspace(-3, 3, 7),), {}, {}
