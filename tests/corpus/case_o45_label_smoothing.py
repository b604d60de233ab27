"""class: numerical mismatch
stage: numerical
thread: none
expect: ok
rule: -
fix: log_softmax, gather and a mask; the mean counts only rows that are not ignored
"""

import torch


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=-100)

    def forward(self, logits, target):
        return self.loss(logits, target)


def build():
    return Loss().eval(), (torch.randn(4, 5), torch.tensor([1, -100, 3, 0])), {}, {}


def second_inputs():
    return [((torch.randn(4, 5), torch.tensor([-100, -100, 2, -100])), {})]
