"""class: dynamic shape constraint
stage: dynamic-shapes
thread: none
expect: warning
rule: dim-needs-divisibility
fix: time = 4 * Dim("_time"): four frames are stacked into one on this line
"""

import torch


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(12, 5)

    def forward(self, frames):
        b, t, d = frames.shape
        wide = frames.reshape(b, t // 4, 4 * d)  # BLAME
        return self.proj(wide)


def build():
    time = torch.export.Dim("time", min=4, max=400)
    return Stack().eval(), (torch.randn(2, 8, 3),), {}, {"dynamic_shapes": {"frames": {1: time}}}


def second_inputs():
    return [((torch.randn(2, 12, 3),), {})]
