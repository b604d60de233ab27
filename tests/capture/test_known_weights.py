"""Code that branches on tensors of the model, whose values an export knows."""

from __future__ import annotations

import pytest
import torch

import onnxplain
from onnxplain.testing import assert_exports


class Switches(torch.nn.Module):
    """Branches on a buffer, a parameter, an attribute, a mask, and a count that `forward` itself raises."""

    def __init__(self, *, on: bool) -> None:
        super().__init__()
        self.register_buffer("enabled", torch.tensor([on], dtype=torch.uint8))
        self.register_buffer("mask", torch.tensor([on, False, True]))
        self.register_buffer("rounds", torch.tensor(3))
        self.slope = torch.nn.Parameter(torch.tensor(0.5 if on else -0.5))
        self.flag = torch.tensor(int(on))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.enabled[0] == 1:
            x = x + 1
        if self.mask.float().mean() > 0.5:
            x = x * 3
        if self.slope > 0:
            x = x * self.slope
        if self.flag:
            x = x.relu()
        for _ in range(int(self.rounds)):
            x = x - 0.25
        return x[:, self.mask]


@pytest.mark.parametrize("on", [True, False])
def test_branches_on_tensors_of_the_model(on: bool) -> None:
    batch = torch.export.Dim("batch")
    model = Switches(on=on)
    program = assert_exports(model, (torch.randn(2, 3),), dynamic_shapes={"x": {0: batch}})
    x = torch.randn(5, 3)
    (got,) = program(x)
    torch.testing.assert_close(got, model(x))


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x * 2 if self.count > 5 else x
        self.count += 1
        return before + 1 if self.count > 5 else before


def test_a_value_that_forward_changes_is_the_one_at_that_time() -> None:
    model = Counts()
    program = onnxplain.export(model, (torch.zeros(2),))
    assert model.count == 5, "an export changes no buffer"
    assert [finding.rule.id for finding in program.diagnostics.findings] == ["OXP2003"]
    (got,) = program(torch.zeros(2))
    assert got.tolist() == [1, 1]


def test_inputs_are_no_constants() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
            return x + 1 if flag else x

    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Net(), (torch.ones(2), torch.tensor(True)), try_fixes=False)
    assert failed.value.findings[0].rule.id == "OXP1001"
