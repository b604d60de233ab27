"""class: Python values among the inputs
stage: inputs
thread: none
expect: warning
rule: python-input-baked
fix: torch.tensor(temperature) makes it an input
"""

import torch


class Sampler(torch.nn.Module):
    def forward(self, logits, temperature, mode="soft"):
        if mode == "hard":  # BLAME
            return logits.argmax(-1)
        return (logits / temperature).softmax(-1)  # BLAME


def build():
    return Sampler().eval(), (torch.randn(2, 5), 0.7), {"mode": "soft"}, {}
