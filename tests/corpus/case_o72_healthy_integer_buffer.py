"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: integer and bool buffers are read only; the clone is written, not the buffer
"""

import torch


class Relative(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Embedding(9, 2)
        self.register_buffer("index", torch.arange(25).reshape(5, 5) % 9, persistent=False)
        self.register_buffer("blocked", torch.ones(5, 5, dtype=torch.bool).triu(1))
        self.scale = 0.5

    def forward(self, scores):
        bias = self.bias(self.index).permute(2, 0, 1)
        table = self.index.clone()
        table[0] = 1
        scores = scores * self.scale + bias
        scores.masked_fill_(self.blocked, float("-inf"))
        return scores.softmax(-1), table.sum() + scores.shape[0]


def build():
    return Relative().eval(), (torch.randn(3, 2, 5, 5),), {}, {"dynamic_shapes": {"scores": {0: "b"}}}


def second_inputs():
    return [((torch.randn(4, 2, 5, 5),), {})]
