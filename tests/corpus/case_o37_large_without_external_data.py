"""class: weights over 2 GiB
stage: serialization
thread: none
expect: error
rule: external-data-needed
fix: external_data=True: 2.4 GB do not fit one protobuf
"""

import torch


class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.Parameter(torch.zeros(600_000, 1000))  # BLAME

    def forward(self, ids):
        return torch.nn.functional.embedding(ids, self.rows)  # BLAME


def build():
    options = {"external_data": False}  # BLAME
    return Table().eval(), (torch.tensor([1, 2]),), {}, options  # BLAME
