"""class: no real weights
stage: serialization
thread: none
expect: error
rule: fake-weights-at-save
fix: load the checkpoint before the export: the weights are on device meta
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)  # BLAME


def build():
    with torch.device("meta"):
        net = Net()  # BLAME
    return net.eval(), (torch.randn(2, 4, device="meta"),), {}, {}  # BLAME
