"""class: dynamic_shapes in a variable
stage: inputs
thread: none
expect: error
rule: dynamic-shapes-mismatch
fix: name the parameter input_ids
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)

    def forward(self, input_ids, attention_mask):
        return self.embed(input_ids) * attention_mask.unsqueeze(-1)


def build():
    batch = torch.export.Dim("batch")
    seq = torch.export.Dim("seq")
    shapes = {
        "ids": {0: batch, 1: seq},  # BLAME
        "attention_mask": {0: batch, 1: seq},
    }
    args = (torch.randint(10, (2, 5)), torch.ones(2, 5, dtype=torch.int64))
    return Model().eval(), args, {}, {"dynamic_shapes": shapes}
