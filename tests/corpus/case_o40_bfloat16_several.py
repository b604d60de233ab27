"""class: dtype the runtime lacks
stage: runtime-load
thread: none
expect: warning
rule: runtime-dtype-unsupported
fix: float32 or float16 for the CPU provider
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x, idx):
        a = torch.cumsum(x, -1)  # BLAME
        b = torch.topk(a, 2).values
        return b.gather(-1, idx)


def build():
    return Net().eval(), (torch.randn(2, 4, dtype=torch.bfloat16), torch.zeros(2, 1, dtype=torch.long)), {}, {}
