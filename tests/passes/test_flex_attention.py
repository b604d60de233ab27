"""`flex_attention` with functions of scores and masks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from packaging.version import Version
from parity import check
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import onnxplain
from onnxplain.testing import assert_exports

Tensor = torch.Tensor

SCORES: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "distance": lambda score, b, h, m, n: score + (m - n) * 0.1,
    "soft cap": lambda score, b, h, m, n: 20 * torch.tanh(score / 20),
    "of the head": lambda score, b, h, m, n: score * (h + 1) - b,
}


class Scores(nn.Module):
    """Attention whose scores a function changes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.change = SCORES[name]

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=self.change)


class Window(nn.Module):
    """Attention to the last four positions with a learned bias, two queries for each key, and the logarithm of the sums."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(2, 16, 16))
        self.mask = create_block_mask(lambda b, h, m, n: (m >= n) & (m - n < 4) & (m != 7), None, None, 16, 16, device="cpu")

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return flex_attention(
            q, k, v, lambda score, b, h, m, n: score + self.bias[h, m, n], self.mask, scale=0.3, enable_gqa=True, return_lse=True
        )


def _inputs(batch: int, heads: tuple[int, int], length: int) -> tuple[Tensor, ...]:
    return tuple(torch.randn(batch, count, length, 8) for count in (heads[0], heads[1], heads[1]))


@pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="the model of torch 2.11 fails at other sizes in ONNX Runtime")
@pytest.mark.parametrize("name", SCORES)
def test_functions_of_scores_at_other_sizes(name: str) -> None:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2)
    model = Scores(name)
    program = assert_exports(model, _inputs(3, (2, 2), 16), dynamic_shapes=({0: batch, 2: length},) * 3)
    check(model, program, _inputs(2, (2, 2), 11))


def test_a_mask_with_an_empty_row_and_grouped_heads() -> None:
    model = Window()
    program = onnxplain.export(model, _inputs(2, (2, 1), 16))
    assert not program.diagnostics.findings
    check(model, program, _inputs(2, (2, 1), 16))


class Noisy(nn.Module):
    """Attention with random numbers in the scores, which `torch.vmap` refuses, and attention without."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        first = flex_attention(q, k, v, lambda score, b, h, m, n: score + torch.rand_like(score))
        return first + flex_attention(q, k, v, SCORES["distance"])


def test_only_functions_that_cannot_be_traced_are_unsupported() -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Noisy(), _inputs(2, (2, 2), 16))
    (finding,) = [each for each in failed.value.log.findings if each.rule.id == "OXP3001"]
    assert [place.line for place in finding.occurrences] == [Noisy.forward.__code__.co_firstlineno + 1]
