"""class: data-dependent output size
stage: translation
thread: none
expect: ok
rule: -
fix: none
"""

import torch


class Boxes(torch.nn.Module):
    def forward(self, scores, boxes):
        keep = torch.nonzero(scores > 0.5).squeeze(1)
        rows, cols = torch.where(boxes > 0.9)
        return boxes[keep], scores[scores > 0.5], rows * 4 + cols


def build():
    return Boxes().eval(), (torch.tensor([0.1, 0.9, 0.7]), torch.rand(3, 4)), {}, {}


def second_inputs():
    return [((torch.tensor([0.1, 0.2, 0.3]), torch.rand(3, 4)), {}), ((torch.tensor([0.8, 0.9, 0.6]), torch.zeros(3, 4)), {})]
