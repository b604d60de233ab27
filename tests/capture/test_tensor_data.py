"""`tensor.data` in a model's code, and tensors that a capture cannot follow: never a constant of the example without a word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import onnxplain

BODIES: dict[str, Callable[[nn.Module, torch.Tensor], torch.Tensor]] = {
    "of an input": lambda _, x: x.data + 1,
    "of a result": lambda _, x: torch.cat([(x * 2).data, torch.zeros(x.size(0), 2)], 1),
    "of a weight": lambda model, x: x * model.weight.data + model.scale.data,
    "of no subclass": lambda _, x: x.as_subclass(torch.Tensor) + 1,
    "in a helper": lambda _, x: torch.autograd.Variable(x).data.softmax(1),
}


def _write(_: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.data.clamp_(0, 1)
    return y + x


def _set(_: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.data = y.data.exp()
    return y + x


class Net(nn.Module):
    def __init__(self, body: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.body = body
        self.weight = nn.Parameter(torch.rand(4))
        self.register_buffer("scale", torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self, x)


@pytest.mark.parametrize("body", [*BODIES.values(), _write, _set], ids=[*BODIES, "written", "set"])
@pytest.mark.parametrize("is_inner", [False, True])
def test_the_data_of_a_tensor(body: Callable[[nn.Module, torch.Tensor], torch.Tensor], is_inner: bool) -> None:
    model: nn.Module = nn.Sequential(Net(body)) if is_inner else Net(body)
    program = onnxplain.export(model, (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    assert not program.diagnostics.findings
    x = torch.randn(5, 4)
    torch.testing.assert_close(program(x)[0], model(x))


def test_data_of_another_shape_is_refused() -> None:
    def body(_: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.data = x.sum()
        return y

    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Net(body), (torch.randn(3, 4),))
    (finding,) = failed.value.log.findings
    assert finding.location.line == body.__code__.co_firstlineno + 2


def test_torch_has_its_own_attribute_afterwards() -> None:
    onnxplain.export(Net(_set), (torch.randn(3, 4),))
    assert "data" not in vars(torch.Tensor)
