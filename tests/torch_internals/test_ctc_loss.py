"""The loss of connectionist temporal classification: exports compute what eager PyTorch does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import onnxplain

CLASSES, LENGTHS = 4, (3, 1, 0)


class Loss(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: Tensor, targets: Tensor, frames: Tensor, lengths: Tensor) -> Tensor:
        return F.ctc_loss(x.log_softmax(-1), targets, frames, lengths, **self.options)


def inputs(count: int) -> tuple[Tensor, ...]:
    """Scores of `count` frames; the second sequence has fewer, so that it needs a blank."""
    targets = torch.tensor([[1, 1, 2], [3, 0, 0], [0, 0, 0]])
    return torch.randn(count, 3, CLASSES), targets, torch.tensor([count, 4, count]), torch.tensor(LENGTHS)


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"reduction": "none", "zero_infinity": True}])
def test_equals_eager_at_every_length(options: dict[str, Any]) -> None:
    model = Loss(**options)
    program = onnxplain.export(model, inputs(6), dynamic_shapes=({0: "frames"}, None, None, None))
    assert not program.diagnostics.findings
    for count in (6, 4, 9):
        given = inputs(count)
        torch.testing.assert_close(program(*given)[0], model(*given))


class Known(nn.Module):
    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        whole = nn.CTCLoss(blank=3)(x.log_softmax(-1), targets, (5, 5, 4), LENGTHS)
        return whole + F.ctc_loss(x[:, 0].log_softmax(-1), targets[:2], torch.tensor(5), torch.tensor(2), blank=3)


def test_targets_one_after_another() -> None:
    given = (torch.randn(5, 3, CLASSES), torch.tensor([1, 1, 2, 0]))
    torch.testing.assert_close(onnxplain.export(Known(), given)(*given)[0], Known()(*given))


def test_no_way_to_emit_the_targets() -> None:
    model, (x, targets, _, lengths) = Loss(reduction="none"), inputs(6)
    frames = torch.tensor([3, 4, 0])
    program = onnxplain.export(model, (x, targets, frames, lengths))
    torch.testing.assert_close(program(x, targets, frames, lengths)[0], model(x, targets, frames, lengths))
    assert program(x, targets, frames, lengths)[0][0] == torch.inf
