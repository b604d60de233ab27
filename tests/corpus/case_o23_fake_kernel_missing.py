"""class: custom operator without a fake kernel
stage: capture
thread: none
expect: error
rule: missing-fake-kernel
fix: @torch.library.register_fake("lab_o23::blur") returning torch.empty_like(x)
"""

import torch


@torch.library.custom_op("lab_o23::blur", mutates_args=())
def blur(x: torch.Tensor, width: int) -> torch.Tensor:
    return x.unfold(-1, width, 1).mean(-1).contiguous()


class Smooth(torch.nn.Module):
    def forward(self, x):
        return blur(x.abs(), 3)  # BLAME


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = Smooth()

    def forward(self, x):
        return self.smooth(x) * 2


def build():
    return Net().eval(), (torch.randn(2, 8),), {}, {}
