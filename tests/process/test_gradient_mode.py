"""Models with tensors of torch.inference_mode, which a run or the construction within it leaves, export like others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import onnxplain

X = torch.randn(2, 5, 4)


class Masked(nn.Module):
    """Keeps a mask for each size."""

    def __init__(self, *, buffer: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 1))
        self.held: dict[str, torch.Tensor] = {}
        self.mask: torch.Tensor | None
        if buffer:
            self.register_buffer("mask", None)
        else:
            self.mask = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        if self.mask is None or self.mask.shape[0] != n:
            self.mask = torch.arange(n, dtype=torch.float32)[:, None].sin()
        if "scale" not in self.held:
            self.held["scale"] = torch.full((4,), 2.0)
        return x * (self.mask * self.weight) * (self.held["scale"] * self.weight)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "a tensor": Masked,
    "a buffer": lambda: Masked(buffer=True),
    "weights": lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)),
    "a layer with a fast path": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    "layers with a fast path": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2),
}


MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)

# Each model in each mode, by turns with fixed sizes and with each of its dims dynamic.
CALLS = [(name, around, (0, 1, None)[(row + column) % 3]) for row, name in enumerate(MODELS) for column, around in enumerate(MODES)]


@pytest.mark.falls_back
@pytest.mark.parametrize(("name", "around", "axis"), CALLS, ids=[f"{name}-{around.__name__}-{axis}" for name, around, axis in CALLS])
def test_exports_are_like_others(name: str, around: Callable[[], torch.no_grad], axis: int | None) -> None:
    with torch.inference_mode(mode="fast path" in name or name == "weights"):
        model = MODELS[name]().eval()
    with torch.inference_mode():
        model(X)
    fast = torch.backends.mha.get_fastpath_enabled()
    with around():
        shapes = None if axis is None else ({axis: "n"},)
        program = onnxplain.export(model, (X,), dynamic_shapes=shapes, verify=True)
    assert (torch.is_grad_enabled(), torch.backends.mha.get_fastpath_enabled()) == (True, fast)
    assert not {"OXP1003", "OXP1011"} & {each.rule.id for each in program.diagnostics.findings}
    for x in (X, torch.randn(*(size + 2 if place == axis else size for place, size in enumerate(X.shape)))):
        with torch.inference_mode():
            torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)
