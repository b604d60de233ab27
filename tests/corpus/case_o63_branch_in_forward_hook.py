"""class: hooks
stage: capture
thread: none
expect: error
rule: data-dependent-branch
fix: no branch on data in the hook: torch.nan_to_num
"""

import torch


def guard(module, args, output):
    if torch.isnan(output).any():  # BLAME
        raise FloatingPointError("NaN")
    return output


def build():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    net[0].register_forward_hook(guard)
    return net.eval(), (torch.randn(2, 3),), {}, {}
