"""class: 0/1 specialization of a dynamic dim
stage: dynamic-shapes
thread: none
expect: ok
rule: -
fix: works for other batches too
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, padding=1)
        self.fc = torch.nn.Linear(8, 3)

    def forward(self, image):
        y = torch.nn.functional.adaptive_avg_pool2d(self.conv(image), 2)
        return self.fc(y.flatten(1))


def build():
    return Net().eval(), (torch.randn(1, 1, 8, 8),), {}, {"dynamic_shapes": {"image": {0: "batch"}}}


def second_inputs():
    return [((torch.randn(3, 1, 8, 8),), {})]
