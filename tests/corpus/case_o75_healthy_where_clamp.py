"""class: healthy model
stage: numerical
thread: none
expect: ok
rule: -
fix: none: shape arithmetic stays symbolic, int / int is float, negative floor division
"""

import torch


class Grid(torch.nn.Module):
    def forward(self, x, offset):
        b, _, h, w = x.shape
        ys = (torch.arange(h) / h * 2 - 1).view(1, h, 1).expand(b, h, w)
        xs = (torch.arange(w) + 0.5) / w
        cell = (offset // 3) * 3 + torch.remainder(offset, 3)
        scale = (h * w) ** 0.5 / max(h, 1)
        return ys * scale + xs, cell, torch.where(offset < 0, -offset, offset).clamp(max=7)


def build():
    shapes = {"x": {2: "h", 3: "w"}, "offset": None}
    return Grid().eval(), (torch.randn(2, 1, 4, 6), torch.tensor([-7, -3, 2])), {}, {"dynamic_shapes": shapes}


def second_inputs():
    return [((torch.randn(2, 1, 5, 3), torch.tensor([-8, 9, 0])), {})]
