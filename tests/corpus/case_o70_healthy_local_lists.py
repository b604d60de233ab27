"""class: healthy model
stage: all
thread: none
expect: ok
rule: -
fix: none: lists and dicts of forward are local, the f-string names a level, the shape is only printed
"""

import torch


class Fpn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList(torch.nn.Conv2d(2, 2, 3, padding=1) for _ in range(3))
        self.heads = torch.nn.ModuleDict({f"p{i}": torch.nn.Conv2d(2, 1, 1) for i in range(3)})

    def forward(self, x):
        feats, out = [], {}
        for i, conv in enumerate(self.convs):
            x = conv(x).relu()
            feats.append(x)
            out[f"p{i}"] = self.heads[f"p{i}"](x)
        text = f"levels {len(feats)}, first {feats[0].ndim}"
        assert text.startswith("levels")
        feats.reverse()
        total = torch.zeros_like(feats[0])
        for feat in feats:
            total += feat
        return out, total.to(torch.float32)


def build():
    return Fpn().eval(), (torch.randn(1, 2, 6, 6),), {}, {"dynamic_shapes": {"x": {0: "b", 2: "h", 3: "w"}}}


def second_inputs():
    return [((torch.randn(2, 2, 5, 9),), {})]
