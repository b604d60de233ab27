"""A small model with every kind of weight, and helpers for tests of weights and files."""

from __future__ import annotations

import pathlib
from typing import Any

import onnx
import torch
from torch import nn

import onnxplain


class Net(nn.Module):
    """Weights that are transposed, merged, tied and unused; a buffer of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm1d(8)
        self.unused = nn.Linear(2, 2)
        self.out = nn.Linear(8, 11, bias=False)
        self.out.weight = self.table.weight
        self.register_buffer("scale", torch.linspace(1, 2, 8))
        self.register_buffer("steps", torch.arange(8.0) / 8, persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids) * self.scale + self.steps
        return self.out(self.norm(self.conv(x.mT)).mT)


def real(seed: int = 0) -> Net:
    torch.manual_seed(seed)
    net = Net().eval()
    with torch.no_grad():
        net.norm.running_mean.normal_()
        net.norm.running_var.uniform_(0.5, 2)
        net.norm.bias.normal_()
        net.scale.normal_()
    return net


IDS = torch.tensor([[1, 2, 3, 10], [0, 5, 5, 7]])


def exported(**options: Any) -> onnxplain.ONNXProgram:
    with onnxplain.enable_fake_mode():
        net = Net().eval()
    return onnxplain.export(net, (IDS,), dynamic_shapes=({1: "length"},), **options)


def ran(path: pathlib.Path, **more: torch.Tensor) -> torch.Tensor:
    import onnxruntime as ort

    onnx.checker.check_model(path, full_check=True)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {"ids": IDS, **more}
    wanted = {each.name for each in (*session.get_inputs(), *session.get_overridable_initializers())}
    return torch.from_numpy(session.run(None, {name: value.numpy() for name, value in feeds.items() if name in wanted})[0])


def close(got: torch.Tensor, want: torch.Tensor) -> None:
    torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-4)
