"""class: export-only branch
stage: capture
thread: none
expect: note
rule: export-only-branch
fix: none needed if meant: the exported model clamps, the eager one does not
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting():  # BLAME
            x = x.clamp(-10.0, 10.0)
        return x.exp()


def build():
    return Net().eval(), (torch.randn(3),), {}, {}
