"""Functions of torch that look at data only to check it are captured, and still check it where the program runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onnxplain.torch_internals import data_checks


class Calls(torch.nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        return self.function(x, weights)


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cov": lambda x, weights: torch.cov(x, fweights=weights, aweights=weights / 2),
    "corrcoef": lambda x, weights: torch.corrcoef(x * weights),
    "combinations": lambda x, weights: torch.combinations(x[0], 3) * weights.sum(),
    "combinations with replacement": lambda x, weights: torch.combinations(x[0], with_replacement=True) * weights.sum(),
    "gaussian_nll_loss": lambda x, weights: F.gaussian_nll_loss(x, -x, weights.expand(3, 4).float()),
    "lstsq": lambda x, weights: torch.linalg.lstsq(x.mT, x[:1].mT * weights.unsqueeze(1)).solution,
}


def captured(name: str) -> torch.nn.Module:
    args = torch.randn(3, 4), torch.tensor([1, 2, 1, 3])
    with data_checks.left_out():
        return torch.export.export(Calls(FUNCTIONS[name]), args, strict=False).module()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_eager(name: str) -> None:
    x, weights = torch.randn(3, 4), torch.tensor([2, 1, 5, 1])
    torch.testing.assert_close(captured(name)(x, weights), FUNCTIONS[name](x, weights), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["cov", "gaussian_nll_loss"])
def test_a_check_that_fails_is_an_error(name: str) -> None:
    x, weights = torch.randn(3, 4), torch.tensor([2, -1, 5, 1])
    with pytest.raises((RuntimeError, ValueError)):
        FUNCTIONS[name](x, weights)
    with pytest.raises(RuntimeError):
        captured(name)(x, weights)
