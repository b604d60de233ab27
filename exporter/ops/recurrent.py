"""Recurrent layers over whole sequences: one ONNX LSTM, GRU or RNN for each layer, both directions included.

PyTorch's tensors, for L steps, a batch of N, I features, a state of H numbers and D directions:

- input and output (L, N, I) and (L, N, D * H), or with N first;
- states (layers * D, N, H);
- for each layer and direction w_ih (G * H, I) and w_hh (G * H, H) for the G gates, and with biases b_ih and b_hh (G * H).

ONNX wants the gates in another order, the weights of both directions in one tensor and the biases in one. The weights are gathered, joined
and reshaped by ONNX operators here, and `optimize` computes these when it writes the weights, one at a time: no second copy is ever kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxplain.recording import op, uniform_number

from . import cells, emit, random, translates
from .loops import scan
from .shapes import may_be_empty


@dataclass(frozen=True)
class _Kind:
    """A kind of recurrent layer.

    Attributes:
        op_type: Its ONNX operator.
        gates: ONNX's gates in their order, each as its place in PyTorch's order.
        attributes: The operator's attributes for one direction; those that are lists have an element for each direction.
        cell: The translation of one step, from its input, states and weights to the new states.
    """

    op_type: str
    gates: tuple[int, ...]
    attributes: Mapping[str, Any]
    cell: Callable[..., Any]


# NOTE: PyTorch's gates are input, forget, cell, output; ONNX's are input, output, forget, cell.
_LSTM = _Kind("LSTM", (0, 3, 1, 2), {}, cells.lstm_cell)
# NOTE: PyTorch's gates are reset, update, new; ONNX's are update, reset, new.
_GRU = _Kind("GRU", (1, 0, 2), {"linear_before_reset": 1}, cells.gru_cell)
_TANH = _Kind("RNN", (0,), {"activations": ["Tanh"]}, cells.rnn_tanh_cell)
_RELU = _Kind("RNN", (0,), {"activations": ["Relu"]}, cells.rnn_relu_cell)


@translates("aten::lstm.input")
def lstm(
    input: ir.Value,
    hx: Sequence[ir.Value],
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, ...) -> (Tensor, Tensor, Tensor).

    `hx` is the state and the cell; the results are the output, and the last state and cell. With projections, `params` has a weight
    w_hr (P, H) more for each layer and direction, and the state and the output have P numbers instead of H.
    """
    return _layers(_LSTM, input, hx, params, has_biases, num_layers, dropout if train else 0, bidirectional, batch_first)


@translates("aten::gru.input")
def gru(
    input: ir.Value,
    hx: ir.Value,
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, ...) -> (Tensor, Tensor).

    The output and the last state.
    """
    return _layers(_GRU, input, [hx], params, has_biases, num_layers, dropout if train else 0, bidirectional, batch_first)


@translates("aten::rnn_tanh.input")
def rnn_tanh(
    input: ir.Value,
    hx: ir.Value,
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, ...) -> (Tensor, Tensor).

    The output and the last state.
    """
    return _layers(_TANH, input, [hx], params, has_biases, num_layers, dropout if train else 0, bidirectional, batch_first)


@translates("aten::rnn_relu.input")
def rnn_relu(
    input: ir.Value,
    hx: ir.Value,
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, ...) -> (Tensor, Tensor).

    The output and the last state.
    """
    return _layers(_RELU, input, [hx], params, has_biases, num_layers, dropout if train else 0, bidirectional, batch_first)


def _of_lengths(kind: _Kind) -> Callable[..., Any]:
    """The translation of an operator such as onnxplain::lstm_of_lengths: as aten::lstm.input, for sequences of different lengths."""

    def layers(
        input: ir.Value,
        lengths: ir.Value,
        hx: Any,
        params: Sequence[ir.Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> Any:
        """The output (L, N, D * H), zero behind the end of each sequence, and the last states (layers * D, N, H); `lengths` is (N)."""
        states = hx if kind is _LSTM else [hx]
        return _layers(kind, input, states, params, has_biases, num_layers, dropout if train else 0, bidirectional, False, lengths)

    return layers


for _operator, _kind in {"lstm": _LSTM, "gru": _GRU, "rnn_tanh": _TANH, "rnn_relu": _RELU}.items():
    translates(f"onnxplain::{_operator}_of_lengths")(_of_lengths(_kind))


def _layers(
    kind: _Kind,
    input: ir.Value,
    states: Sequence[ir.Value],
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
    lengths: ir.Value | None = None,
) -> list[Any]:
    """The output (L, N, D * H), or with N first, and the last states (layers * D, N, H), from one ONNX operator for each layer.

    With `lengths` (N), the states are those at the end of each sequence, behind which the output is zero.
    """
    assert params[0].shape is not None
    assert states[0].shape is not None
    size = _fixed(params[0].shape[0]) // len(kind.gates)
    directions = 2 if bidirectional else 1
    per_direction = len(params) // (num_layers * directions)
    is_projected = per_direction == (5 if has_biases else 3)
    if input.dtype is ir.DataType.DOUBLE or (is_projected and lengths is not None):
        return _by_steps(kind, input, states, params, has_biases, num_layers, dropout, directions, batch_first, lengths)
    axis = 0 if batch_first else 1
    # NOTE: ONNX Runtime's LSTM and GRU end the process where the batch is 0 (seen in 1.31).
    if kind in (_LSTM, _GRU) and lengths is None and may_be_empty(input, axis):
        longer = [each if uniform_number(each) == 0 else _longer(each, 1) for each in states]
        rest = (params, has_biases, num_layers, dropout, bidirectional, batch_first)
        output, *last = _layers(kind, _longer(input, axis), longer, *rest)
        return [_shorter(output, axis), *(_shorter(each, 1) for each in last)]
    width = directions * _fixed(states[0].shape[-1])
    ends = None if lengths is None else op.Cast(lengths, to=ir.DataType.INT32)
    first_states = [_of_layers(state, num_layers, directions) for state in states]
    value: Any = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
    last_states: list[list[Any]] = []
    for layer in range(num_layers):
        start = layer * directions * per_direction
        weights = [params[start + each * per_direction : start + (each + 1) * per_direction] for each in range(directions)]
        initial = [each[layer] for each in first_states]
        if dropout and layer:
            value = random.dropout(value, dropout, True)
        if is_projected:
            output, *last = _projected(value, weights, has_biases, initial, size)
        else:
            output, *last = _layer(kind, value, weights, has_biases, initial, size, ends)
        last_states.append(last)
        # NOTE: ONNX's own attribute for a batch in front has no kernel in ONNX Runtime (read in 1.31).
        value = _joined(output, width, bidirectional, batch_first and layer == num_layers - 1)
    return [value, *(_concatenated(each) for each in zip(*last_states, strict=True))]


def _longer(value: ir.Value, axis: int) -> Any:
    """`value` with zeros behind its last element along a dim."""
    rank = 3
    longer = op.Pad(value, [0] * rank + [int(each == axis) for each in range(rank)])
    longer.type, longer.shape = value.type, ir.Shape([None if each == axis else size for each, size in enumerate(value.shape or ())])
    return longer


def _shorter(value: Any, axis: int) -> Any:
    return op.Slice(value, [0], [-1], [axis])


def _of_layers(state: ir.Value, layers: int, directions: int) -> Sequence[Any]:
    """The first state (D, N, H) of each layer; None where it is zero, as by default."""
    if uniform_number(state) == 0:
        return [None] * layers
    return [state] if layers == 1 else emit("Split", [state, [directions] * layers], {"axis": 0}, outputs=layers)


def _layer(
    kind: _Kind, value: Any, weights: Sequence[Sequence[ir.Value]], has_biases: bool, initial: Sequence[Any], size: int, lengths: Any
) -> list[Any]:
    """The output (L, D, N, H) and the last states (D, N, H) of one layer, from the weights of each direction; `size` is H."""
    input_weights, state_weights = (_concatenated([_in_order(kind, each[place], size) for each in weights]) for place in (0, 1))
    biases = _concatenated([_biases(kind, each[2], each[3]) for each in weights]) if has_biases else None
    attributes = {name: each * len(weights) if isinstance(each, list) else each for name, each in kind.attributes.items()}
    attributes |= {"direction": "bidirectional" if len(weights) == 2 else "forward", "hidden_size": size}
    return _run(kind, [value, input_weights, state_weights, biases, lengths, *initial], attributes)


def _run(kind: _Kind, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
    return emit(kind.op_type, inputs, attributes, outputs=3 if kind is _LSTM else 2)


def _projected(value: Any, weights: Sequence[Sequence[ir.Value]], has_biases: bool, initial: Sequence[Any], size: int) -> list[Any]:
    """As `_layer`, for an LSTM with projections: its state is w_hr (P, H) @ h, where h (H) is the state of an LSTM without.

    w_hh (4 * H, P) @ w_hr takes the place of w_hh; ONNX Runtime multiplies them once, when it loads the model. A first state of P numbers
    becomes features of the input, which are zero after the first step.
    """
    states, cells = (_of_layers(each, len(weights), 1) if each is not None else [None] * len(weights) for each in initial)
    results = []
    for direction, (each, state, cell) in enumerate(zip(weights, states, cells, strict=True)):
        input_weight, state_weight, projection = each[0], each[1], each[-1]
        features = value
        if state is not None:
            input_weight = op.Concat(input_weight, state_weight, axis=1)
            features = op.Concat(value, _at_first_step(state, value, direction), axis=2)
        biases = _biases(_LSTM, each[2], each[3]) if has_biases else None
        recurrence = op.MatMul(_in_order(_LSTM, state_weight, size), projection)
        attributes = {"direction": "reverse" if direction else "forward", "hidden_size": size}
        inputs = [features, _in_order(_LSTM, input_weight, size), recurrence, biases, None, None, cell]
        output, last, last_cell = _run(_LSTM, inputs, attributes)
        by = op.Transpose(projection, perm=[1, 0])
        results.append((op.MatMul(output, by), op.MatMul(last, by), last_cell))
    outputs, *last_states = zip(*results, strict=True)
    return [op.Concat(*outputs, axis=1), *map(_concatenated, last_states)]


def _at_first_step(state: Any, value: Any, direction: int) -> Any:
    """(L, N, P): a state (1, N, P) at the step at which a direction begins, and zero at all others."""
    others = op.Sub(op.Shape(value, end=1), [1])
    before, after = (others, [0]) if direction else ([0], others)
    return op.Pad(state, op.Concat(before, [0, 0], after, [0, 0], axis=0))


def _in_order(kind: _Kind, weight: Any, size: int) -> Any:
    """(1, G * H, I), the gates in ONNX's order, from (G * H, I) in PyTorch's; `size` is H."""
    gates = len(kind.gates)
    if gates == 1:
        return op.Unsqueeze(weight, [0])
    return op.Reshape(op.Gather(op.Reshape(weight, [gates, size, -1]), list(kind.gates), axis=0), [1, gates * size, -1])


def _biases(kind: _Kind, of_input: ir.Value, of_state: ir.Value) -> Any:
    """(1, 2 * G * H), the gates in ONNX's order, from two of (G * H) in PyTorch's."""
    both = op.Concat(of_input, of_state, axis=0)
    gates = len(kind.gates)
    if gates == 1:
        return op.Unsqueeze(both, [0])
    return op.Reshape(op.Gather(op.Reshape(both, [2, gates, -1]), list(kind.gates), axis=1), [1, -1])


def _joined(output: Any, width: int, has_directions: bool, batch_first: bool) -> Any:
    """(L, N, D * H), or with N first, from (L, D, N, H); `width` is D * H."""
    if not has_directions and not batch_first:
        return op.Squeeze(output, [1])
    return op.Reshape(op.Transpose(output, perm=[2, 0, 1, 3] if batch_first else [0, 2, 1, 3]), [0, 0, width])


def _concatenated(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else op.Concat(*values, axis=0)


def _fixed(size: Any) -> int:
    """A size that must not be dynamic."""
    if not isinstance(size, int):
        raise ValueError(f"the number of features of a recurrent layer must be fixed, it is {size}")
    return size


def _by_steps(
    kind: _Kind,
    input: ir.Value,
    states: Sequence[ir.Value],
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    directions: int,
    batch_first: bool,
    lengths: ir.Value | None,
) -> list[Any]:
    """As `_layers`, as loops over the steps: ONNX Runtime has no kernels of recurrent layers for DOUBLE (seen in 1.31)."""
    per_direction = len(params) // (num_layers * directions)
    value: Any = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
    inside = [] if lengths is None else [_inside(value, lengths)]
    last_states: list[list[Any]] = []
    for layer in range(num_layers):
        if dropout and layer:
            value = random.dropout(value, dropout, True)
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            weights = params[index * per_direction : (index + 1) * per_direction]
            projection = weights[-1] if per_direction == (5 if has_biases else 3) else None
            step = functools.partial(_step, kind, weights[: 4 if has_biases else 2], projection)
            initial = [op.Gather(each, index, axis=0) for each in states]
            steps, *rest = [_reversed(each) if direction else each for each in (value, *inside)]
            steps.type, steps.shape = input.type, steps.shape or ir.Shape([None, None, None])
            for each in rest:
                each.type, each.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([None, None, 1])
            *last, output = scan(step, initial, [steps, *rest], axis=0)
            last_states.append([op.Unsqueeze(each, [0]) for each in last])
            outputs.append(_reversed(output) if direction else output)
        value = outputs[0] if directions == 1 else op.Concat(*outputs, axis=-1)
    value = op.Transpose(value, perm=[1, 0, 2]) if batch_first else value
    return [value, *(_concatenated(each) for each in zip(*last_states, strict=True))]


def _inside(value: Any, lengths: Any) -> Any:
    """(L, N, 1): whether a sequence of the batch (L, N, I) has a step."""
    steps = op.Range(0, op.Squeeze(op.Shape(value, end=1)), 1)
    return op.Unsqueeze(op.Less(op.Unsqueeze(steps, [1]), lengths), [2])


def _step(kind: _Kind, weights: Sequence[ir.Value], projection: ir.Value | None, *values: Any) -> tuple[list[Any], list[Any]]:
    """The states after a step, and the step's output.

    `values` are the states before and the input; and, for sequences of different lengths, which of them have the step (N, 1).
    """
    count = 2 if kind is _LSTM else 1
    before, (value, *inside) = values[:count], values[count:]
    if kind is _LSTM:
        state, cell = kind.cell(value, before, *weights)
        after = [state if projection is None else op.MatMul(state, op.Transpose(projection, perm=[1, 0])), cell]
    else:
        after = [kind.cell(value, *before, *weights)]
    if not inside:
        return after, after[:1]
    kept = [op.Where(inside[0], new, old) for new, old in zip(after, before, strict=True)]
    return kept, [op.Where(inside[0], after[0], op.CastLike(0.0, after[0]))]


def _reversed(value: Any) -> Any:
    return op.Slice(value, [-1], [-(2**63)], [0], [-1])
