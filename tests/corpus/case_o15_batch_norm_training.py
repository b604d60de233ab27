"""class: training mode
stage: capture
thread: none
expect: warning
rule: training-mode
fix: model.eval(): the batch norm of backbone.1 normalises by the batch and updates its statistics
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        feats = self.backbone(x)  # BLAME
        return self.head(feats.mean((2, 3)))


def build():
    return Net(), (torch.randn(2, 3, 6, 6),), {}, {}
