"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: a plain function is a model, too
"""

import torch


def mel(power, weight):
    return torch.log10(torch.clamp(torch.einsum("...ft,fm->...mt", power, weight), min=1e-10))


def build():
    return mel, (torch.rand(2, 5, 7), torch.rand(5, 3)), {}, {"dynamic_shapes": {"power": {2: "t"}, "weight": None}}


def second_inputs():
    return [((torch.rand(2, 5, 11), torch.rand(5, 3)), {})]
