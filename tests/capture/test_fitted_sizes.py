"""Branches that pad tensors to a size or cut them leave the size dynamic: to pad by a negative amount cuts."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from marks import needs_columns

import onnxplain

Load = Callable[..., ModuleType]

pytestmark = needs_columns

SOURCE = """
    import torch
    import torch.nn.functional as F


    class Net(torch.nn.Module):
        most = 8

        def forward(self, x, mask):
            n = x.shape[1]
{}
            return x.flatten(1).sum(1, keepdim=True) + x.view(x.shape[0], 8, 4)[:, :, 0] * mask
"""
RESULT = "x.flatten(1).sum(1, keepdim=True) + x.view(x.shape[0], 8, 4)[:, :, 0] * mask"
FITTED = {
    "cut or pad": """
            if n > self.most:
                x = x[:, : self.most]
                mask = mask[:, : self.most]
            elif n < self.most:
                x = F.pad(x, (0, 0, 0, self.most - n))
                mask = F.pad(mask, (0, self.most - n), value=2.0)
    """,
    "pad or cut": """
            if n < self.most:
                x = F.pad(x, (0, 0, 0, self.most - n), value=1.0)
                mask = F.pad(mask, (0, self.most - n))
            elif n > self.most:
                x = x[:, : self.most, :]
                mask = mask[..., : self.most]
    """,
    "pad or else cut": """
            if n <= self.most:
                x = F.pad(x, (0, 0, 0, self.most - n))
                mask = F.pad(mask, (0, self.most - n))
            else:
                x = x[:, : self.most]
                mask = mask[:, : self.most]
    """,
    "cut or else pad": """
            if x.shape[1] >= 8:
                x = x[:, :8]
                mask = mask[:, :8]
            else:
                x = F.pad(x, pad=[0, 0, 0, 8 - n])
                mask = F.pad(mask, [0, 8 - n])
    """,
}
# To pad is not what these do for other sizes: to another size, from the beginning, behind another test, or in another dim.
TOLD = {
    "another size": "if n > 8:\n                x = x[:, :8]\n            elif n < 8:\n                x = F.pad(x, (0, 0, 0, 9 - n))",
    "the beginning": "if n > 8:\n                x = x[:, :8]\n            elif n < 8:\n                x = F.pad(x, (0, 0, 8 - n, 0))",
    "the end": "if n > 8:\n                x = x[:, -8:]\n            elif n < 8:\n                x = F.pad(x, (0, 0, 0, 8 - n))",
    "another test": "if n > 9:\n                x = x[:, :8]\n            elif n < 8:\n                x = F.pad(x, (0, 0, 0, 8 - n))",
    "another dim": "if n > 8:\n                x = x[:, :, :8]\n            elif n < 8:\n                x = F.pad(x, (0, 0, 0, 8 - n))",
    "another mode": (
        "if n > 8:\n                x = x[:, :8]\n            elif n < 8:\n                x = F.pad(x, (0, 0, 0, 8 - n), mode='reflect')"
    ),
}


@pytest.mark.parametrize("length", [5, 8, 11])
@pytest.mark.parametrize("name", FITTED)
def test_to_pad_is_right_for_all_sizes(name: str, length: int, load: Load) -> None:
    model = load(SOURCE.format(FITTED[name].strip("\n"))).Net()
    shapes = ({0: "batch", 1: "length"}, {0: "batch", 1: "length"})
    program = onnxplain.export(model, (torch.rand(2, length, 4), torch.rand(2, length)), dynamic_shapes=shapes)
    assert program.diagnostics.findings == ()
    for other in (2, 7, 8, 9, 20):
        given = torch.rand(3, other, 4), torch.rand(3, other)
        torch.testing.assert_close(program(*given)[0], model(*given))


@pytest.mark.falls_back
@pytest.mark.parametrize("name", TOLD)
def test_other_branches_are_told(name: str, load: Load) -> None:
    model = load(SOURCE.replace(RESULT, "x * 2").format("            " + TOLD[name])).Net()
    try:
        program = onnxplain.export(model, (torch.rand(2, 11, 4), torch.rand(2, 11)), dynamic_shapes=({1: "length"}, {1: "length"}))
        findings = program.diagnostics.findings
    except onnxplain.ExportFailed as failed:
        findings = failed.findings
    assert {each.rule.id for each in findings} & {"OXP1011", "OXP1003"}
