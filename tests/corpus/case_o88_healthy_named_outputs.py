"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: a named tuple of outputs, a size as tensor, defaults that are not passed
"""

from typing import NamedTuple

import torch


class Detections(NamedTuple):
    scores: torch.Tensor
    boxes: torch.Tensor


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 5)

    def forward(self, x, threshold=None, return_all=False):
        y = self.head(x)
        scores, boxes = y[..., 0].sigmoid(), y[..., 1:]
        if threshold is not None:
            scores = scores * (scores > threshold)
        return Detections(scores, boxes if not return_all else boxes.flip(0))


def build():
    return Net().eval(), (torch.randn(2, 3, 4),), {}, {"dynamic_shapes": {"x": {0: "b", 1: "n"}}}


def second_inputs():
    return [((torch.randn(1, 6, 4),), {})]
