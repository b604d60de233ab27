"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: sizes stay symbolic, the check holds for every size of the Dim
"""

import torch


class MultiHead(torch.nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(dim, 3 * dim)

    def forward(self, x):
        b, t, d = x.shape
        torch._check(t >= 1)
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(b, -1, d)


def build():
    d = torch.export.Dim
    return MultiHead().eval(), (torch.randn(2, 5, 8),), {}, {"dynamic_shapes": {"x": {0: d("b"), 1: d("t", min=1, max=64)}}}


def second_inputs():
    return [((torch.randn(3, 1, 8),), {}), ((torch.randn(1, 9, 8),), {})]
