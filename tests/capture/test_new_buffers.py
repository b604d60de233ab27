"""Buffers, parameters and submodules that `forward` makes: the export tells them, and leaves the model as it was."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable

import pytest
import torch

import onnxplain

Load = Callable[..., types.ModuleType]

NET = """
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", None)
            self.register_buffer("known", torch.ones(3))
            self.register_buffer("other", torch.arange(3.0))
            self.register_parameter("weight", None)
            self.register_parameter("bias", torch.nn.Parameter(torch.ones(3)))

        def forward(self, x):
            {}


    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()

        def forward(self, x):
            return self.inner(x)
"""

MADE = {
    "sum": ("if self.kept is None:\n    self.kept = torch.zeros_like(x)\nself.kept = self.kept + x\nreturn self.kept * self.other", "kept"),
    "table": (
        "if self.kept is None or len(self.kept) < len(x):\n    self.kept = torch.arange(x.shape[0])\nreturn x * self.kept[:, None]",
        "kept",
    ),
    "registered": ("self.register_buffer('kept', x * 2, persistent=False)\nreturn self.kept + self.bias", "kept"),
    "new": ("self.register_buffer('new', x * 2)\nreturn self.new + self.known", "new"),
    "parameter": ("if self.weight is None:\n    self.weight = torch.nn.Parameter(torch.full((3,), 2.0))\nreturn x * self.weight", "weight"),
    "module": ("self.scale = torch.nn.Softmax(1)\nreturn self.scale(x)", "scale"),
}


def parts(model: torch.nn.Module) -> list[tuple[str, list[str]]]:
    return [(name, [*vars(each), *each._buffers, *each._parameters, *each._modules]) for name, each in model.named_modules()]


@pytest.mark.parametrize("name", ["Net", "Outer"])
@pytest.mark.parametrize("made", MADE)
def test_what_forward_makes(made: str, name: str, load: Load) -> None:
    body, part = MADE[made]
    model = getattr(load(NET.format(body.replace("\n", "\n            "))), name)().eval()
    before, state, unused = parts(model), copy.deepcopy(model.state_dict()), copy.deepcopy(model)
    program = onnxplain.export(model, (torch.ones(2, 3),), dynamic_shapes=({0: "n"},), verify=True)
    rules = {(each.rule.id, getattr(each.rule, "attribute", None)) for each in program.diagnostics.findings}
    assert rules == {("OXP1018", part)}
    assert parts(model) == before
    torch.testing.assert_close(model.state_dict(), state)
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x)[0], unused(x).detach())


def test_a_buffer_after_one_that_is_none(load: Load) -> None:
    """The update is that of the buffer, and of no input."""
    net = load(NET.format("self.known = self.known + x[0]\n            return self.known + self.other")).Net()
    program = onnxplain.export(net, (torch.ones(2, 3),))
    assert [(each.rule.id, each.rule.name) for each in program.diagnostics.findings] == [("OXP2003", "known")]
