"""class: custom operator without translation
stage: dispatch
thread: none
expect: error
rule: custom-op-no-translation
fix: custom_translation_table={torch.ops.lab_o59.nms.default: ...}
"""

import torch


@torch.library.custom_op("lab_o59::swish", mutates_args=())
def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return x * torch.sigmoid(beta * x)


@swish.register_fake
def _(x, beta=1.0):
    return torch.empty_like(x)


class Act(torch.nn.Module):
    def forward(self, x):
        return swish(x, beta=1.5)  # BLAME


def build():
    return torch.nn.Sequential(torch.nn.Linear(3, 3), Act(), Act()).eval(), (torch.randn(2, 3),), {}, {}
