"""Transformers of torch ask by data whether a mask is causal: captured without the question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import onnxplain


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False)

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.layers(x, mask=mask)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.layers(x, x.flip(1), tgt_mask=mask)


class Causal(Encoder):
    """Makes its own mask."""

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.layers(x + mask.sum(), mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


class Told(Encoder):
    """Says that the mask is causal, and passes one that is."""

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.layers(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), is_causal=True) + mask.sum()


def causal(length: int) -> Tensor:
    return torch.ones(length, length).triu(1).bool()


def blocks(length: int) -> Tensor:
    return torch.arange(length) // 2 != torch.arange(length)[:, None] // 2


@pytest.mark.parametrize("kind", [Encoder, Decoder, Causal, Told])
def test_transformers_take_masks(kind: Callable[[], nn.Module]) -> None:
    model = kind().eval()
    shapes = {"x": {0: "batch", 1: "length"}, "mask": {0: "length", 1: "length"}}
    program = onnxplain.export(model, (torch.randn(2, 5, 8), causal(5)), dynamic_shapes=shapes)
    assert program.diagnostics.findings == ()
    for mask in causal(5), blocks(7), causal(3):
        x = torch.randn(3, len(mask), 8)
        torch.testing.assert_close(program(x, mask)[0], model(x, mask), rtol=1e-4, atol=1e-4)


def test_a_mask_that_a_transformer_holds() -> None:
    model = Encoder().eval()
    mask = nn.Buffer(blocks(5))
    program = onnxplain.export(lambda x: model(x, mask), (torch.randn(2, 5, 8),), dynamic_shapes={"x": {0: "batch"}})
    x = torch.randn(3, 5, 8)
    torch.testing.assert_close(program(x)[0], model(x, mask), rtol=1e-4, atol=1e-4)
