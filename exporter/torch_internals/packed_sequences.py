"""Packed sequences, whose shapes depend on data: recurrent layers get the padded batch and its lengths, as those of ONNX do.

A packed sequence holds, step by step, the elements of all sequences that are long enough. While a capture runs, each one is made together
with the padded batch that it stands for. Layers and `pad_packed_sequence` take that batch, and nothing reads the packed elements then,
unless the model itself does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from . import patching, shape_env
from .fake_tensors import is_fake
from .patching import Slot, all_wrapped
from .symbolic_expressions import expression_of
from .symbols import Symbol

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)

# NOTE: read in torch 2.11, 2.13 and 2.15, nn/utils/rnn.py: pack_padded_sequence and pad_packed_sequence call these functions.
_PACK = Symbol("torch._VF:_pack_padded_sequence", without="a model that packs sequences is refused")
_PAD = Symbol("torch._VF:_pad_packed_sequence", without=_PACK.without)
_VERSION = Symbol("torch:Tensor._version", without="packed elements are always padded again")
_LAYERS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}
"""The operators by the `mode` of a layer."""

_LIBRARY = torch.library.Library("onnxplain", "FRAGMENT")
_ARGUMENTS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def padded() -> contextlib.AbstractContextManager[None]:
    """While it is open, recurrent layers take a packed sequence as the padded batch that it was made of."""
    return all_wrapped(_replacements()) if _PACK.is_present and _PAD.is_present else contextlib.nullcontext()


def _replacements() -> Iterator[tuple[Slot, Callable[..., Any]]]:
    sequences = _Sequences()
    functions = sys.modules["torch._VF"]
    yield Slot(functions, _PACK.name), sequences.pack
    yield Slot(functions, _PAD.name), sequences.pad
    yield Slot(torch.nn.utils.rnn, "pad_packed_sequence"), _to_total_length
    for layer in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        yield Slot(layer, "forward"), sequences.run


@dataclasses.dataclass(frozen=True)
class _Batch:
    """What a packed sequence knows of its batch of B sequences, padded to T steps.

    Attributes:
        batch_sizes: The number of sequences that have a step, for each step.
        lengths: The length of each sequence (B).
        inside: Whether a sequence has a step (T, B).
        places: The places in the flattened `inside` where it is true.
    """

    batch_sizes: Tensor
    lengths: Tensor
    inside: Tensor
    places: Tensor

    def packed(self, padded: Tensor) -> Tensor:
        """The elements of a padded batch (T, B, *) that belong to sequences, step by step."""
        return padded.flatten(0, 1).index_select(0, self.places)

    def padded(self, packed: Tensor) -> Tensor:
        """The padded batch (T, B, *) with such elements, and with others behind the end of each sequence."""
        place = self.inside.flatten().cumsum(0) - 1
        batch: Tensor = packed.index_select(0, place.clamp(min=0)).unflatten(0, self.inside.shape)
        return batch

    def kept(self, padded: Tensor, value: float) -> Tensor:
        """`padded` with `value` behind the end of each sequence."""
        inside = self.inside.reshape(*self.inside.shape, *[1] * (padded.ndim - 2))
        kept: Tensor = padded.masked_fill(~inside, value)
        return kept


class _Sequences:
    """The packed sequences of one capture, which live as long as it does."""

    def __init__(self) -> None:
        self._batches: dict[int, _Batch] = {}
        self._padded: dict[int, _Padded] = {}

    def pack(self, original: Callable[..., Any], input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
        """aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)."""
        if not is_fake(input):
            real: tuple[Tensor, Tensor] = original(input, lengths, batch_first)
            return real
        # NOTE: the model may write to the batch and to the lengths afterwards, whose copies cost nothing in a graph.
        steps_first, lengths = (input.transpose(0, 1) if batch_first else input).clone(), lengths.to(input.device).clone()
        steps, count = steps_first.shape[:2]
        torch._check(lengths.shape[0] == count)
        inside = torch.arange(steps, device=input.device)[:, None] < lengths
        longest: Any = lengths.max().item()
        torch._check(longest >= 0)
        torch._check(longest <= steps)
        # NOTE: PyTorch keeps these numbers on the CPU.
        batch_sizes = inside.sum(1).narrow(0, 0, longest).cpu()
        batch = _Batch(batch_sizes, lengths, inside, inside.flatten().nonzero().squeeze(1))
        self._batches[id(batch.batch_sizes)] = batch
        return self._packed(batch, steps_first, is_zero=False), batch.batch_sizes

    def pad(
        self, original: Callable[..., Any], data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: Any
    ) -> tuple[Tensor, Tensor]:
        """aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length)."""
        if not is_fake(data):
            real: tuple[Tensor, Tensor] = original(data, batch_sizes, batch_first, padding_value, total_length)
            return real
        batch = self._batch(batch_sizes, data)
        steps_first, is_zero = self._unpacked(data, batch)
        if padding_value != 0 or not is_zero:
            steps_first = batch.kept(steps_first, padding_value)
        longest = batch_sizes.shape[0]
        if not _is_same(total_length, steps_first.shape[0]):
            steps_first = steps_first.narrow(0, 0, longest)
            if not _is_same(total_length, longest):
                more = [0, 0] * (steps_first.ndim - 1) + [0, total_length - longest]
                steps_first = F.pad(steps_first, more, value=padding_value)
        return (steps_first.transpose(0, 1) if batch_first else steps_first).clone(), batch.lengths.cpu().clone()

    def run(self, original: Callable[..., Any], layer: Any, input: Any, hx: Any = None) -> Any:
        """The `forward` of a recurrent layer."""
        if not isinstance(input, PackedSequence) or not is_fake(input.data):
            return original(layer, input, hx)
        batch = self._batch(input.batch_sizes, input.data)
        value, _ = self._unpacked(input.data, batch)
        is_lstm = layer.mode == "LSTM"
        layer.check_input(value, None)
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        sizes = [layer.proj_size or layer.hidden_size, layer.hidden_size] if is_lstm else [layer.hidden_size]
        if hx is None:
            states = [value.new_zeros(count, value.shape[1], size) for size in sizes]
        else:
            permuted = layer.permute_hidden(hx, input.sorted_indices)
            states = list(permuted) if is_lstm else [permuted]
            for state, size in zip(states, sizes, strict=True):
                # NOTE: the number of sequences may depend on data, so that Python cannot compare it.
                layer.check_hidden_size(state, (count, state.shape[1], size))
                torch._check(state.shape[1] == value.shape[1])
        operator = getattr(torch.ops.onnxplain, f"{_LAYERS[layer.mode]}_of_lengths").default
        weights = [weight for each in layer.all_weights for weight in each]
        options = (layer.bias, layer.num_layers, float(layer.dropout), layer.training, layer.bidirectional)
        output, *last = operator(value, batch.lengths, states if is_lstm else states[0], weights, *options)
        packed = PackedSequence(self._packed(batch, output, is_zero=True), input.batch_sizes, input.sorted_indices, input.unsorted_indices)
        return packed, layer.permute_hidden(tuple(last) if is_lstm else last[0], input.unsorted_indices)

    def _batch(self, batch_sizes: Tensor, data: Tensor) -> _Batch:
        """The batch of a packed sequence; one that the model did not pack is known by its sizes only."""
        known = self._batches.get(id(batch_sizes))
        if known is None:
            count = batch_sizes.max().item()
            torch._check(count >= 0)
            inside = torch.arange(count, device=data.device) < batch_sizes[:, None].to(data.device)
            known = _Batch(batch_sizes, inside.sum(0), inside, inside.flatten().nonzero().squeeze(1))
            self._batches[id(batch_sizes)] = known
        return known

    def _packed(self, batch: _Batch, padded: Tensor, *, is_zero: bool) -> Tensor:
        """The elements of a padded batch."""
        data = batch.packed(padded)
        self._padded[id(data)] = _Padded(data, padded, is_zero, _version(data))
        return data

    def _unpacked(self, data: Tensor, batch: _Batch) -> tuple[Tensor, bool]:
        """The padded batch of packed elements, and whether it is zero behind the end of each sequence."""
        known = self._padded.get(id(data))
        if known is not None and known.version is not None and known.version == _version(data):
            return known.padded, known.is_zero
        return batch.padded(data), False


@dataclasses.dataclass(frozen=True)
class _Padded:
    """The padded batch that packed elements were made of.

    Attributes:
        data: The packed elements.
        padded: The padded batch (T, B, *).
        is_zero: Whether it is zero behind the end of each sequence.
        version: How often the elements had been written to then; None if torch does not count it.
    """

    data: Tensor
    padded: Tensor
    is_zero: bool
    version: int | None


def _version(tensor: Tensor) -> int | None:
    """How often a tensor has been written to; None for those of inference mode, of which torch does not count it."""
    return None if tensor.is_inference() or not _VERSION.is_present else getattr(tensor, _VERSION.name)


def _to_total_length(original: Callable[..., Any], sequence: Any, *args: Any, **kwargs: Any) -> Any:
    """The padded batch of a packed sequence. PyTorch refuses a total length below that of the longest sequence, which is data."""
    given = {**dict(zip(("batch_first", "padding_value", "total_length"), args, strict=False)), **kwargs}
    total = given.get("total_length")
    if total is not None and isinstance(sequence, PackedSequence) and is_fake(sequence.data):
        torch._check(total >= sequence.batch_sizes.shape[0])
    return original(sequence, **given)


def _is_same(size: Any, other: Any) -> bool:
    """Whether two sizes are certainly equal."""
    if isinstance(size, int) and isinstance(other, int):
        return size == other
    return isinstance(size, torch.SymInt) and isinstance(other, torch.SymInt) and bool(expression_of(size) == expression_of(other))


def _define(name: str) -> None:
    """Defines an operator that runs recurrent layers over a padded batch.

    It is `aten::lstm.data` and so on with the padded batch (T, B, I) and its lengths (B) in place of the packed elements and their number
    in each step; the output (T, B, D * H) is zero behind the end of each sequence.
    """
    is_lstm = name == "lstm"
    states, results = ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if is_lstm else ("Tensor hx", "(Tensor, Tensor)")
    qualified = f"{name}_of_lengths"
    _LIBRARY.define(f"{qualified}(Tensor input, Tensor lengths, {states}, {_ARGUMENTS}) -> {results}")

    def compute(input: Tensor, lengths: Tensor, hx: Any, params: Sequence[Tensor], *options: Any) -> Any:
        order = lengths.argsort(descending=True)
        pack, pad = (getattr(torch.ops.aten, symbol.name) for symbol in (_PACK, _PAD))
        data, batch_sizes = pack(input[:, order], lengths[order].cpu(), False)
        sorted_states = [each[:, order] for each in hx] if is_lstm else hx[:, order]
        output, *last = getattr(torch.ops.aten, name).data(data, batch_sizes, sorted_states, params, *options)
        result, _ = pad(output, batch_sizes, False, 0.0, input.shape[0])
        back = order.argsort()
        return tuple(each[:, back].contiguous() for each in (result, *last))

    def shapes(input: Tensor, lengths: Tensor, hx: Any, params: Sequence[Tensor], *options: Any) -> Any:
        del lengths, params
        *_, bidirectional = options
        last = list(hx) if is_lstm else [hx]
        features = last[0].shape[-1] * (2 if bidirectional else 1)
        return (input.new_empty(*input.shape[:-1], features), *map(torch.empty_like, last))

    _LIBRARY.impl(qualified, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"onnxplain::{qualified}", shapes, lib=_LIBRARY)


for _name in _LAYERS.values():
    _define(_name)
