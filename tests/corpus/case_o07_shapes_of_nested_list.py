"""class: dynamic_shapes with another nesting
stage: inputs
thread: none
expect: error
rule: dynamic-shapes-structure
fix: {"levels": [{2: "h"}, {2: "h2"}]}: one entry for each tensor of the list
"""

import torch


class Pyramid(torch.nn.Module):
    def forward(self, levels):  # BLAME
        return sum(level.mean((2, 3)) for level in levels)


def build():
    shapes = {"levels": {2: "h"}}  # BLAME
    return Pyramid().eval(), ([torch.randn(1, 2, 4, 4), torch.randn(1, 2, 8, 8)],), {}, {"dynamic_shapes": shapes}  # BLAME
