"""A mode sees every operator that runs."""

from __future__ import annotations

from typing import Any

import torch

from onnxplain.torch_internals import dispatch_modes


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin().add(1, alpha=2), lambda x: x.cos(), (x,))  # type: ignore[no-any-return]


def test_operators_in_a_branch_are_seen_and_exported_later() -> None:
    seen: list[tuple[str, Any]] = []
    x = torch.ones(3)
    with torch.no_grad(), dispatch_modes.each_call(lambda operator, _, result: seen.append((str(operator), result))):
        result = Branches()(x)
    assert [operator for operator, _ in seen[-2:]] == ["aten.sin.default", "aten.add.Tensor"]
    for each in (result, seen[-1][1], torch.export.export(Branches(), (x,)).module()(x)):
        torch.testing.assert_close(each, x.sin() + 2)
