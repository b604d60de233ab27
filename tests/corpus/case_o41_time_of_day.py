"""class: host value baked
stage: capture
thread: none
expect: warning
rule: host-value-baked
fix: pass the time as an input
"""

import time

import torch


class Clock:
    @staticmethod
    def phase():
        return time.time() % 60 / 60  # BLAME


class Net(torch.nn.Module):
    def forward(self, x):
        return x + Clock.phase()  # BLAME


def build():
    return Net().eval(), (torch.randn(3),), {}, {}
