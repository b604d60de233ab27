"""class: packed sequence
stage: capture
thread: none
expect: ok
rule: none
fix: none needed: the layer runs on the padded batch and its lengths
"""

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Speech(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(3, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        return pad_packed_sequence(out, batch_first=True)[0]


def build():
    return Speech().eval(), (torch.randn(2, 5, 3), torch.tensor([5, 3])), {}, {}
