"""class: runtime check removed
stage: capture
thread: none
expect: warning
rule: runtime-check-removed
fix: check the sizes before the model runs: the ONNX model takes any
"""

import torch


class Patches(torch.nn.Module):
    def forward(self, image):
        h, w = image.shape[-2:]
        assert h >= 8 and w >= 8, f"image of {h}x{w} is too small"  # BLAME  # noqa: PT018  a user's assert, not a test's
        return torch.nn.functional.max_pool2d(image, 2)


def build():
    d = torch.export.Dim
    shapes = {"image": {2: d("h", min=4, max=64), 3: d("w", min=4, max=64)}}
    return Patches().eval(), (torch.randn(1, 1, 12, 16),), {}, {"dynamic_shapes": shapes}
