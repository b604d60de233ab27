"""class: autograd.Function
stage: capture
thread: none
expect: warning
rule: autograd-symbolic-ignored
fix: torch.library.custom_op with a translation: symbolic is not called
"""

import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        return torch.round(x * 2**bits) / 2**bits

    @staticmethod
    def symbolic(g, x, bits):
        return g.op("acme::Round", x, bits_i=bits)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Quant(torch.nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.round = lambda x: Round.apply(x, bits)  # BLAME

    def forward(self, x):
        return self.round(x)


def build():
    return torch.nn.Sequential(torch.nn.Linear(3, 3), Quant(4)).eval(), (torch.randn(2, 3),), {}, {}
