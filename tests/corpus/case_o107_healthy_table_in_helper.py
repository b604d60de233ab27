"""class: a table that a plain object caches
stage: capture
thread: none
expect: ok
rule: none
fix: none needed
"""

import torch


class Rope:
    def __init__(self):
        self.cis = None

    def make(self):
        with torch.device("cpu"):
            found = []
            for d, e in ((4, 64), (8, 64)):
                freqs = 1.0 / (256.0 ** (torch.arange(0, d, 2, dtype=torch.float64, device="cpu") / d))
                steps = torch.arange(e, device=freqs.device, dtype=torch.float64)
                freqs = torch.outer(steps, freqs).float()
                found.append(torch.polar(torch.ones_like(freqs), freqs).to(torch.complex64))
            return found

    def __call__(self, ids):
        if self.cis is None:
            self.cis = self.make()
            self.cis = [each.to(ids.device) for each in self.cis]
        return torch.cat([self.cis[i][ids[:, i]] for i in range(2)], -1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = Rope()

    def forward(self, x, ids):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.rope(ids)).flatten(1)


def build():
    return Net(), (torch.randn(5, 12), torch.randint(64, (5, 2))), {}, {}
