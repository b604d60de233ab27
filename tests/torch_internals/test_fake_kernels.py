"""Operators whose shapes torch does not know, or gets wrong, for dynamic sizes."""

from __future__ import annotations

import pytest
import torch

import onnxplain


@pytest.mark.parametrize("columns", [5, 6])
def test_the_parts_of_a_dynamic_dim_lack_that_dim(columns: int) -> None:
    class Parts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
            joined = torch.cat(x[:, ::2].unbind(-1)[::-1], -1)
            return joined, joined.size(0)

    dims = {0: "batch", 1: torch.export.Dim("columns")}
    program = onnxplain.export(Parts(), (torch.randn(4, 5),), dynamic_shapes=(dims,))
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1011"]
    x = torch.randn(3, columns)
    joined, size = program(x)
    torch.testing.assert_close(joined, Parts()(x)[0])
    assert size == 9
