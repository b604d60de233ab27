"""class: python side effects
stage: capture
thread: none
expect: note
rule: python-side-effect
fix: none needed for the model: nothing is printed or kept when the ONNX model runs
"""

import torch

seen = []


class Net(torch.nn.Module):
    def forward(self, x):
        y = x.exp()
        seen.append(y.mean())  # BLAME
        print("shape", tuple(y.shape))  # noqa: T201  the case is about it
        return y + 1


def build():
    return Net().eval(), (torch.randn(2, 3),), {}, {}
