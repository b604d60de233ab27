"""class: legacy dynamic_axes
stage: inputs
thread: none
expect: warning
rule: legacy-dynamic-axes
fix: dynamic_shapes={"x": {0: "batch"}}
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, x):  # BLAME
        return self.fc(x).softmax(-1)


def build():
    axes = {"pixels": {0: "batch"}, "scores": {0: "batch"}}  # BLAME
    names = {"input_names": ["pixels"], "output_names": ["scores"]}
    return Net().eval(), (torch.randn(2, 4),), {}, {"dynamic_axes": axes, **names}  # BLAME


def second_inputs():
    return [((torch.randn(7, 4),), {})]
