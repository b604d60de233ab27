"""class: folded constants
stage: serialization
thread: none
expect: ok
rule: -
fix: the causal mask of 1024 x 1024 must not bloat the file or the log
"""

import torch


class Causal(torch.nn.Module):
    def forward(self, scores):
        mask = torch.triu(torch.full((1024, 1024), float("-inf")), diagonal=1)
        return (scores + mask[: scores.shape[-1], : scores.shape[-1]]).softmax(-1)


def build():
    return Causal().eval(), (torch.randn(1, 4, 4),), {}, {"dynamic_shapes": {"scores": {1: "n", 2: "n"}}}


def second_inputs():
    return [((torch.randn(1, 9, 9),), {})]
