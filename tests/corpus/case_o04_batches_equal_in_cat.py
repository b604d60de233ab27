"""class: dynamic shape constraint
stage: dynamic-shapes
thread: none
expect: warning
rule: dims-constrained-equal
fix: give both batches the same Dim: cat along axis 1 needs equal axis 0
"""

import torch


def fuse(left, right):
    return torch.cat([left, right], dim=1)  # BLAME


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 4)
        self.b = torch.nn.Linear(5, 4)

    def forward(self, image, text):
        return fuse(self.a(image), self.b(text))


def build():
    d = torch.export.Dim
    shapes = {"image": {0: d("images", min=2, max=16)}, "text": {0: d("texts", min=2, max=16)}}
    return Two().eval(), (torch.randn(3, 3), torch.randn(3, 5)), {}, {"dynamic_shapes": shapes}
