"""class: indexed writes
stage: numerical
thread: none
expect: ok
rule: -
fix: none
"""

import torch


class Scatter(torch.nn.Module):
    def forward(self, x, idx, values):
        out = torch.zeros(5)
        out.index_put_((idx,), values, accumulate=True)
        x = x.clone()
        x[x < 0] = 0.5
        x[:, 1::2] = x[:, 1::2] * 2
        return out, x, torch.zeros(5).index_add(0, idx, values, alpha=2)


def build():
    return Scatter().eval(), (torch.randn(2, 4), torch.tensor([0, 0, 3]), torch.randn(3)), {}, {}


def second_inputs():
    return [((torch.randn(2, 4), torch.tensor([4, 4, 4]), torch.randn(3)), {})]
