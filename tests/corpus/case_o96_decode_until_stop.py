"""class: greedy decoding
stage: capture
thread: none
expect: error
rule: data-dependent-value
fix: export one step, and loop in the caller
"""

import torch


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(8, 6)
        self.cell = torch.nn.GRUCell(6, 6)
        self.head = torch.nn.Linear(6, 8)

    def forward(self, hidden):
        token = torch.zeros(1, dtype=torch.int64)
        out = []
        for _ in range(5):
            hidden = self.cell(self.embed(token), hidden)
            token = self.head(hidden).argmax(-1)
            out.append(token)
            if token.item() == 1:  # BLAME
                break
        return torch.stack(out, 1)


def build():
    torch.manual_seed(3)
    return Decoder().eval(), (torch.randn(1, 6),), {}, {}
