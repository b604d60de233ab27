"""class: runtime check removed
stage: capture
thread: none
expect: warning
rule: runtime-check-removed
fix: the ONNX model does not check the length
"""

import torch


class Crop(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 4)  # BLAME
        return x * k


def build():
    return Crop().eval(), (torch.randn(6), torch.tensor(3)), {}, {}
