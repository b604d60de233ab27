"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: dropout is off in eval, LSTM may touch _flat_weights, weights are tied
"""

import torch


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(20, 8)
        self.drop = torch.nn.Dropout(0.3)
        self.rnn = torch.nn.LSTM(8, 8, num_layers=2, dropout=0.2, bidirectional=True, batch_first=True)
        self.down = torch.nn.Linear(16, 8)
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids, labels=None, state=None):
        h, _ = self.rnn(self.drop(self.emb(ids)), state)
        logits = self.head(self.drop(self.down(h)))
        if labels is not None:
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return logits


def build():
    return Tagger().eval(), (torch.ones(2, 5, dtype=torch.long),), {}, {"dynamic_shapes": {"ids": {0: "b", 1: "t"}}}


def second_inputs():
    return [((torch.full((3, 7), 4),), {})]
