"""Recurrent layers over whole sequences."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils import rnn

from .case import Case, dynamic, randn, static

X = randn(5, 3, 6)
"""Steps, batch, features."""


def state(layers: int, size: int = 4) -> torch.Tensor:
    return randn(layers, 3, size)


def stateless(kind: type[nn.RNNBase], **options: Any) -> Case:
    """A layer from the state that it makes."""
    return dynamic(small(kind(6, 4, **options)), (X,))


def in_double(kind: type[nn.RNNBase], **options: Any) -> Case:
    """A layer of float64, for which ONNX Runtime has no kernel."""
    return dynamic(small(kind(6, 4, **options)).double(), (X.double(),), tolerance=1e-9)


def small(layer: nn.RNNBase) -> nn.RNNBase:
    """`layer` in evaluation with weights that saturate no gate."""
    for index, weight in enumerate(layer.parameters()):
        generator = torch.Generator().manual_seed(index)
        weight.data = torch.randn(weight.shape, generator=generator) / 2
    return layer.eval()


def with_state(layer: nn.RNNBase, layers: int, size: int = 4) -> Case:
    if isinstance(layer, nn.LSTM):
        return dynamic(lambda x, h, c: layer(x, (h, c)), (X, state(layers, size), state(layers)))
    return dynamic(lambda x, h: layer(x, h), (X, state(layers)))


def packed(layer: nn.RNNBase, x: torch.Tensor = X) -> Case:
    """A layer that runs over a packed sequence."""
    layer = small(layer).to(x.dtype)

    def run(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        # NOTE: the sum says that both have the same batch.
        sequence = rnn.pack_padded_sequence(x + 0 * lengths[:, None], lengths, enforce_sorted=False)
        output, last = layer(sequence)
        return (rnn.pad_packed_sequence(output)[0], *(last if isinstance(last, tuple) else [last]))

    return dynamic(run, (x, torch.tensor([5, 2, 4])))


CASES: dict[str, Case] = {
    "lstm": stateless(nn.LSTM),
    "lstm-bidirectional-stack": stateless(nn.LSTM, num_layers=2, bidirectional=True),
    "lstm-batch-first": stateless(nn.LSTM, num_layers=2, batch_first=True),
    "lstm-without-bias": stateless(nn.LSTM, bias=False, bidirectional=True, batch_first=True),
    "lstm-projections": stateless(nn.LSTM, proj_size=2, num_layers=2),
    "lstm-bidirectional-projections": stateless(nn.LSTM, proj_size=2, bidirectional=True, bias=False, batch_first=True),
    "lstm-with-state": with_state(small(nn.LSTM(6, 4)), 1),
    "lstm-stack-with-state": with_state(small(nn.LSTM(6, 4, 2, bidirectional=True)), 4),
    "lstm-projections-with-state": with_state(small(nn.LSTM(6, 4, 2, proj_size=2)), 2, 2),
    "lstm-bidirectional-projections-with-state": with_state(small(nn.LSTM(6, 4, bidirectional=True, proj_size=3)), 2, 3),
    "gru": stateless(nn.GRU),
    "gru-bidirectional-stack": stateless(nn.GRU, num_layers=2, bidirectional=True, batch_first=True),
    "gru-without-bias": stateless(nn.GRU, bias=False),
    "gru-with-state": with_state(small(nn.GRU(6, 4, 2, bidirectional=True)), 4),
    "rnn-tanh": stateless(nn.RNN, num_layers=2, bidirectional=True),
    "rnn-relu": stateless(nn.RNN, num_layers=2, nonlinearity="relu", batch_first=True),
    "rnn-without-bias": stateless(nn.RNN, bias=False),
    "rnn-with-state": with_state(small(nn.RNN(6, 4, nonlinearity="relu", bidirectional=True)), 2),
    "lstm-of-doubles": in_double(nn.LSTM, num_layers=2, bidirectional=True, proj_size=3, batch_first=True),
    "gru-of-doubles": in_double(nn.GRU, num_layers=2),
    "rnn-of-doubles": in_double(nn.RNN, bidirectional=True, bias=False),
    "lstm-packed": packed(nn.LSTM(6, 4, 2, bidirectional=True)),
    "lstm-projections-packed": packed(nn.LSTM(6, 4, proj_size=2, bidirectional=True)),
    "gru-packed": packed(nn.GRU(6, 4, bidirectional=True, bias=False)),
    "gru-of-doubles-packed": packed(nn.GRU(6, 4, bidirectional=True), X.double()),
    "rnn-tanh-packed": packed(nn.RNN(6, 4, 2)),
    "rnn-relu-packed": packed(nn.RNN(6, 4, nonlinearity="relu", bidirectional=True)),
    "weights-are-inputs": static(
        lambda x, w, r: torch.gru(x, torch.zeros(1, 3, 4), [w, r], False, 1, 0.0, False, False, False),
        (X, randn(12, 6), randn(12, 4)),
    ),
}
