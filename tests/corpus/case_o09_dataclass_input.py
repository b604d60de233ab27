"""class: unregistered input type
stage: inputs
thread: none
expect: error
rule: unsupported-input-type
fix: torch.export.register_dataclass(Batch)
"""

from dataclasses import dataclass

import torch


@dataclass
class Batch:  # BLAME
    tokens: torch.Tensor
    lengths: torch.Tensor

    def mask(self):
        return torch.arange(self.tokens.shape[1]) < self.lengths[:, None]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(10, 4)

    def forward(self, batch):  # BLAME
        return self.emb(batch.tokens) * batch.mask().unsqueeze(-1)


def build():
    example = Batch(torch.ones(2, 3, dtype=torch.long), torch.tensor([2, 3]))  # BLAME
    return Net().eval(), (example,), {}, {}
