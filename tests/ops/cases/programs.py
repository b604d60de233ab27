"""What a program returns, and what it computes of constants alone."""

from __future__ import annotations

import torch
from torch import nn

from .case import Case, X, dynamic, randn, static


class WeightAsOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(randn(2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, self.weight


def known_numbers() -> torch.Tensor:
    """Made of constants alone, by many operators that are folded."""
    a = torch.arange(6)
    b = torch.stack([a.cumsum(0), a.flip(0)])
    c = (
        b[torch.tensor([1, 0, 1]), torch.tensor([5, 0, 2])].sum()
        + b.amax(1).prod()
        - b.amin()
        + b.gather(1, torch.tensor([[0, 5], [1, 1]])).max()
    )
    d = torch.ones(6, 6).tril().sum(1) + torch.ones(6, 6).triu(1)[2] + torch.sign(a - 3.0)
    return d * c + (a & 3) + (a | 1) + (~a)


CASES: dict[str, Case] = {
    "no-grad": dynamic(torch.no_grad()(lambda x: x * 2 + 1), X),
    "input-is-output": dynamic(lambda x: x, X),
    "output-twice": dynamic(lambda x: (y := x * 2, y, x), X),
    "constant-is-output": static(lambda x: (x + 1, torch.ones(2)), X),
    "weight-is-output": static(WeightAsOutput(), X),
    "numbers-are-outputs": static(lambda x: (x + 1, 3, 2.5, True), X),
    "nested-output": dynamic(lambda x: {"a": x + 1, "b": [x * 2, None]}, X),
    "known-numbers": static(lambda x: x[0, 0] + known_numbers(), X),
}
