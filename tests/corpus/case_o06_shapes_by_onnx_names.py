"""class: dynamic_shapes with other names
stage: inputs
thread: none
expect: error
rule: dynamic-shapes-structure
fix: {"ids": {0: "batch"}, "mask": {0: "batch"}}: the keys are the parameters of forward, not the ONNX names
"""

import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(10, 4)

    def forward(self, ids, mask):  # BLAME
        return self.emb(ids) * mask.unsqueeze(-1)


def build():
    options = {
        "input_names": ["input_ids", "attention_mask"],
        "dynamic_shapes": {"input_ids": {0: "batch"}, "attention_mask": {0: "batch"}},  # BLAME
    }
    return Encoder().eval(), (torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3)), {}, options  # BLAME
