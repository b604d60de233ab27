"""One step of a recurrent layer: input (N, I), state (N, H), weights w_ih (G * H, I) and w_hh (G * H, H) for G gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op

from . import emit, translates
from .linear import linear


@translates("aten::gru_cell")
def gru_cell(
    input: ir.Value, hx: ir.Value, w_ih: ir.Value, w_hh: ir.Value, b_ih: ir.Value | None = None, b_hh: ir.Value | None = None
) -> Any:
    """aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor.

    The new state (N, H). The gates are reset, update, new.
    """
    reset_in, update_in, new_in = _gates(linear(input, w_ih, b_ih), 3)
    reset_state, update_state, new_state = _gates(linear(hx, w_hh, b_hh), 3)
    reset = op.Sigmoid(op.Add(reset_in, reset_state))
    update = op.Sigmoid(op.Add(update_in, update_state))
    new = op.Tanh(op.Add(new_in, op.Mul(reset, new_state)))
    return op.Add(new, op.Mul(update, op.Sub(hx, new)))


@translates("aten::lstm_cell")
def lstm_cell(
    input: ir.Value, hx: Sequence[ir.Value], w_ih: ir.Value, w_hh: ir.Value, b_ih: ir.Value | None = None, b_hh: ir.Value | None = None
) -> Any:
    """aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor).

    `hx` is the state and the cell, both (N, H); the result is both after the step. The gates are input, forget, cell, output.
    """
    state, cell = hx
    enter, forget, new, output = _gates(op.Add(linear(input, w_ih, b_ih), linear(state, w_hh, b_hh)), 4)
    cell = op.Add(op.Mul(op.Sigmoid(forget), cell), op.Mul(op.Sigmoid(enter), op.Tanh(new)))
    return [op.Mul(op.Sigmoid(output), op.Tanh(cell)), cell]


@translates("aten::rnn_tanh_cell")
def rnn_tanh_cell(
    input: ir.Value, hx: ir.Value, w_ih: ir.Value, w_hh: ir.Value, b_ih: ir.Value | None = None, b_hh: ir.Value | None = None
) -> Any:
    """aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor.

    The new state (N, H).
    """
    return op.Tanh(op.Add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)))


@translates("aten::rnn_relu_cell")
def rnn_relu_cell(
    input: ir.Value, hx: ir.Value, w_ih: ir.Value, w_hh: ir.Value, b_ih: ir.Value | None = None, b_hh: ir.Value | None = None
) -> Any:
    """aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor.

    The new state (N, H).
    """
    return op.Relu(op.Add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)))


def _gates(value: Any, count: int) -> list[Any]:
    return emit("Split", [value], {"axis": -1, "num_outputs": count}, outputs=count)
