"""Recurrent layers stay one operator with a dynamic length.

torch traces operators such as `aten.lstm.input` into one node, but finds the node's shape by running every time step in Python. That takes
long, and it fixes the length of the sequence. This module computes the shapes from the arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import operator_kernels
from .fake_tensors import is_fake
from .patching import all_wrapped

_KEYS = ("CompositeImplicitAutograd", "Autograd")


def by_shape() -> contextlib.AbstractContextManager[None]:
    """While it is open, recurrent operators on fake tensors are computed from their shapes."""
    # NOTE: read in torch 2.11, 2.13 and 2.15, export/_patches.py, which replaces the same kernels.
    return all_wrapped(
        (slot, _on_fake_tensors(shapes)) for operator, shapes in _shapes().items() for slot in operator_kernels.slots([operator], *_KEYS)
    )


def _shapes() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    return {aten.lstm.input: _lstm, aten.gru.input: _gru, aten.rnn_tanh.input: _gru, aten.rnn_relu.input: _gru}


def _on_fake_tensors(shapes: Callable[..., Any]) -> Any:
    def compute(otherwise: Any, *args: Any) -> Any:
        return shapes(*args) if is_fake(args[0]) else otherwise(*args)

    return compute


def _gru(
    input: torch.Tensor,
    hx: torch.Tensor,
    _params: Sequence[torch.Tensor],
    _has_biases: bool,
    _num_layers: int,
    _dropout: float,
    _train: bool,
    bidirectional: bool,
    _batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output (length, batch, directions * hidden), or with the batch first, and the last hidden state, of the shape of `hx`.

    The parameters are those of `aten.gru.input`, by position; the shapes do not depend on the underscored ones.
    """
    features = hx.shape[-1] * (2 if bidirectional else 1)
    return input.new_empty(*input.shape[:-1], features), torch.empty_like(hx)


def _lstm(input: torch.Tensor, hx: Sequence[torch.Tensor], *rest: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `_gru`, and the last cell state. A projection makes the hidden state smaller than the cell state."""
    output, hidden = _gru(input, hx[0], *rest)
    return output, hidden, torch.empty_like(hx[1])
