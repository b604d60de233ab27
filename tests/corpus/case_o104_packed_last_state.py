"""class: packed sequence, last state
stage: capture
thread: none
expect: ok
rule: none
fix: none needed: the layer runs on the padded batch and its lengths
"""

import torch
from torch.nn.utils.rnn import pack_padded_sequence


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(3, 4, batch_first=True)
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (h, _) = self.rnn(packed)
        return self.fc(h[-1])


def build():
    return Classifier().eval(), (torch.randn(3, 5, 3), torch.tensor([5, 2, 3])), {}, {}
