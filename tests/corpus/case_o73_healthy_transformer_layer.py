"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


def build():
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    shapes = {"x": {0: "b", 1: "t"}, "padding": {0: "b", 1: "t"}}
    return Net().eval(), (torch.randn(2, 5, 8), mask), {}, {"dynamic_shapes": shapes}


def second_inputs():
    mask = torch.zeros(3, 7, dtype=torch.bool)
    mask[0, 5:] = True
    return [((torch.randn(3, 7, 8), mask), {})]
