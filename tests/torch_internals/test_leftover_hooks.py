"""A failed export leaves no hooks in torch, which would keep the model and its weights."""

from __future__ import annotations

import pytest
import torch
from torch.nn.modules import module as torch_modules

import onnxplain


class Branches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count = self.count + 1
        return x * self.count if x.sum() > 0 else x


def test_no_hook_is_left() -> None:
    registered = torch_modules.register_module_buffer_registration_hook(lambda *_: None)
    try:
        before = dict(torch_modules._global_buffer_registration_hooks)
        with pytest.raises(onnxplain.ExportFailed):
            onnxplain.export(Branches(), (torch.randn(2, 3),), control_flow="report")
        assert dict(torch_modules._global_buffer_registration_hooks) == before
    finally:
        registered.remove()
