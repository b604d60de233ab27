"""class: training mode
stage: capture
thread: none
expect: warning
rule: training-mode
fix: model.eval(): batch norm 1 is in training mode
"""

import torch


def build():
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())  # BLAME
    return net, (torch.randn(2, 3, 6, 6),), {}, {}  # BLAME
