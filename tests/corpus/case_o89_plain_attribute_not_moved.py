"""class: device mismatch
stage: capture
thread: none
expect: error
rule: device-mismatch
fix: register the table as a buffer: model.to() does not move a plain attribute
"""

import torch


class Encoding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.randn(10, 4)

    def lookup(self, n):
        return self.table[:n]

    def forward(self, x):
        return x + self.lookup(x.shape[1])  # BLAME


def build():
    return Encoding().to("meta").eval(), (torch.randn(2, 5, 4, device="meta"),), {}, {}
