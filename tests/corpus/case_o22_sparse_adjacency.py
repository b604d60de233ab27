"""class: sparse tensors
stage: dispatch
thread: none
expect: error
rule: sparse-unsupported
fix: keep the adjacency dense, or gather and scatter by its indices
"""

import torch


class GraphConv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("adjacency", torch.eye(4).to_sparse_coo())
        self.fc = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.sparse.mm(self.adjacency, self.fc(x))  # BLAME


def build():
    return GraphConv().eval(), (torch.randn(4, 3),), {}, {}
