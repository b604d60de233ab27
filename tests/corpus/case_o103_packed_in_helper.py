"""class: packed sequence in a helper
stage: capture
thread: none
expect: ok
rule: none
fix: none needed: the layer runs on the padded batch and its lengths
"""

import torch
from torch import nn
from torch.nn.utils import rnn as rnn_utils


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 6, batch_first=True, bidirectional=True)

    def pack(self, x, lengths):
        order = lengths.argsort(descending=True)
        return rnn_utils.pack_padded_sequence(x[order], lengths[order].tolist(), batch_first=True), order

    def forward(self, tokens, lengths):
        packed, order = self.pack(self.embed(tokens), lengths)
        out, _ = self.lstm(packed)
        out, _ = rnn_utils.pad_packed_sequence(out, batch_first=True)
        return out[order.argsort()]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(12, 3)

    def forward(self, tokens, lengths):
        return self.head(self.encoder(tokens, lengths))


def build():
    return Tagger().eval(), (torch.randint(20, (2, 5)), torch.tensor([5, 3])), {}, {}
