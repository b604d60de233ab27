"""class: quantized modules
stage: capture
thread: none
expect: error
rule: legacy-quantized-module
fix: pt2e or torchao: quantized tensors and FloatFunctional have no ONNX form here
"""

import torch


class Net(torch.nn.Module):
    def forward(self, x):
        q = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)  # BLAME
        return torch.ops.quantized.add(q, q, 0.2, 0).dequantize()  # BLAME


def build():
    return Net().eval(), (torch.randn(2, 3),), {}, {}
