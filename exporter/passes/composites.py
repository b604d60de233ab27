"""Decompositions of operators that PyTorch computes in one kernel, and does not decompose or decomposes only for numbers, not for NaN."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.decompositions import decomposition_of
from onnxplain.torch_internals.operators import OpOverload


def _pdist(self: Tensor, p: float = 2.0) -> Tensor:
    """aten::pdist: the p-norm distances between the rows of a matrix (N, M), a row with each later one: (N * (N - 1) / 2)."""
    first, second = pairs(self.shape[0], self.device)
    distances: Tensor = torch.linalg.vector_norm(self[first] - self[second], p, dim=1)
    return distances


def pairs(count: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    """The positions of two different elements of `count`, in order."""
    if isinstance(count, int):
        rows, columns = torch.triu_indices(count, count, 1, device=device).unbind()
        return rows, columns
    # NOTE: counted from the last pair, those whose first element is the same are 1, 2, 3 and so on: triangular numbers.
    pairs = count * (count - 1) // 2
    place = torch.arange(pairs, device=device)
    left = pairs - 1 - place
    row = ((torch.sqrt(8 * left.double() + 1) - 1) / 2).long()
    first = count - 2 - row
    return first, count - 1 - (left - row * (row + 1) // 2)


def _rrelu(
    self: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: torch.Generator | None = None
) -> Tensor:
    """aten::rrelu: in training, negative elements times a random number between `lower` and `upper`; otherwise times their mean."""
    del generator
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2)
    slopes = torch.rand(self.shape, dtype=self.dtype, device=self.device) * (upper - lower) + lower
    return torch.where(self <= 0, self * slopes, self)


def _segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """aten::segment_reduce: reduces segments of a dim, given by their lengths or their ends.

    A segment without elements gives `initial`; without it 0 for a sum, 1 for a product, NaN for a mean, and an infinity for an extremum.
    """
    del indices, unsafe
    if lengths is not None:
        offsets = torch.cat([lengths.new_zeros(lengths.narrow(axis, 0, 1).shape), lengths.cumsum(axis)], axis)
    assert offsets is not None
    lengths = offsets.diff(dim=axis)
    start = {"sum": 0, "mean": 0, "prod": 1, "max": -math.inf, "min": math.inf}[reduce]
    # NOTE: the dims after `axis` belong to the elements; each of those before it has its own lengths.
    place = torch.arange(data.shape[axis], device=data.device)
    # NOTE: elements before the first offset and after the last one get segments, which are cut off.
    segment = (place.unsqueeze(-1) >= offsets.unsqueeze(axis)).sum(-1)
    while segment.ndim < data.ndim:
        segment = segment.unsqueeze(-1)
    shape = [*lengths.shape[:axis], lengths.shape[axis] + 2, *data.shape[axis + 1 :]]
    result = torch.full(shape, start if initial is None else initial, dtype=data.dtype, device=data.device)
    kind = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}[reduce]
    result = result.scatter_reduce(axis, segment.expand(data.shape), data, kind).narrow(axis, 1, lengths.shape[axis])
    if reduce != "mean":
        return result
    counts = lengths.reshape([*lengths.shape, *[1] * (data.ndim - lengths.ndim)])
    mean = result / counts
    return mean if initial is None else torch.where(counts == 0, initial, mean)


def _searchsorted(sorted_sequence: Tensor, self: float, **options: Any) -> Tensor:
    """aten::searchsorted.Scalar: the place of one number."""
    is_promoted = isinstance(self, float) and not sorted_sequence.is_floating_point()
    number = torch.full((), self, dtype=None if is_promoted else sorted_sequence.dtype, device=sorted_sequence.device)
    return torch.searchsorted(sorted_sequence, number, **options)


def _addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """aten::addbmm: `beta` times a matrix, plus `alpha` times the sum of the products of matrices. Real ones have a translation."""
    product = alpha * torch.bmm(batch1, batch2).sum(0)
    return product if beta == 0 else beta * self + product


def _linspace(operator: OpOverload, start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
    """aten::linspace of tensors: whole numbers go from a whole number to a whole number."""

    def whole(end: Any) -> Any:
        return end.to(dtype) if isinstance(end, Tensor) else int(end)

    known = decomposition_of(operator)
    assert known is not None
    # NOTE: the ends may be on another device than the result.
    made = torch.empty(0, device=options.get("device")).device
    start, end = (each.to(made) if isinstance(each, Tensor) else each for each in (start, end))
    if dtype is not None and not dtype.is_floating_point and not dtype.is_complex:
        start, end = whole(start), whole(end)
    return known(start, end, steps, dtype=dtype, **options)


def _bucketize(self: float, boundaries: Tensor, **options: Any) -> Tensor:
    """aten::bucketize.Scalar: as `_searchsorted`."""
    return _searchsorted(boundaries, self, **options)


def _isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """aten::isin: each element is compared with each of the others. The translation of a search would do that as well."""
    del assume_unique
    found = (elements.unsqueeze(-1) == test_elements.flatten()).any(-1)
    return found.logical_not() if invert else found


def _fused_gru_cell(
    input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """aten::_thnn_fused_gru_cell, the kernel of a GRU cell on a GPU: the new state (batch, N), and what only a backward pass needs."""
    reset, update, new = _plus(input_gates, input_bias).chunk(3, 1)
    own_reset, own_update, own_new = _plus(hidden_gates, hidden_bias).chunk(3, 1)
    made = torch.tanh(new + torch.sigmoid(reset + own_reset) * own_new)
    return made + torch.sigmoid(update + own_update) * (hx - made), input_gates.new_empty((*hx.shape[:-1], hx.shape[-1] * 5))


def _fused_lstm_cell(
    input_gates: Tensor, hidden_gates: Tensor, cx: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """aten::_thnn_fused_lstm_cell, the kernel of an LSTM cell on a GPU: both new states (batch, N), and what only a backward pass needs."""
    gates = _plus(input_gates, input_bias) + _plus(hidden_gates, hidden_bias)
    taken, kept, new, shown = gates.chunk(4, 1)
    cell = torch.sigmoid(kept) * cx + torch.sigmoid(taken) * torch.tanh(new)
    return torch.sigmoid(shown) * torch.tanh(cell), cell, torch.empty_like(input_gates)


def _plus(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def _randperm(n: int, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """aten::randperm: the order of random numbers."""
    return torch.rand(n, device=options.get("device")).argsort().to(dtype or torch.int64)


def _random(self: Tensor, start: int = 0, end: int | None = None, generator: torch.Generator | None = None) -> Tensor:
    """aten::random: integers from `start` to `end`, exclusive. Without `end`, all that the dtype can hold exactly."""
    del generator
    if end is None:
        bits = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8, torch.bool: 1}.get(self.dtype)
        end = start + (2**bits + (self.dtype is not torch.bool) if bits else min(torch.iinfo(self.dtype).max, 2**63 - 2) + 1)
    return torch.randint(start, end, self.shape, device=self.device).to(self.dtype)


_BY_NAME: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("addbmm", "default"): _addbmm,
    **{
        ("linspace", overload): functools.partial(_linspace, getattr(torch.ops.aten.linspace, overload))
        for overload in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
    },
    ("_pdist_forward", "default"): _pdist,
    ("_thnn_fused_gru_cell", "default"): _fused_gru_cell,
    ("_thnn_fused_lstm_cell", "default"): _fused_lstm_cell,
    ("bucketize", "Scalar"): _bucketize,
    ("isin", "Tensor_Tensor"): _isin,
    ("pdist", "default"): _pdist,
    ("random", "default"): _random,
    ("random", "from"): _random,
    ("random", "to"): lambda self, end, **options: _random(self, 0, end, **options),
    ("randperm", "default"): _randperm,
    ("rrelu", "default"): _rrelu,
    ("searchsorted", "Scalar"): _searchsorted,
    ("segment_reduce", "default"): _segment_reduce,
    # NOTE: torch decomposes the other copies of views itself.
    ("select_copy", "int"): torch.ops.aten.select.int,
    ("slice_copy", "Tensor"): torch.ops.aten.slice.Tensor,
}
DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    getattr(getattr(torch.ops.aten, name), overload): each for (name, overload), each in _BY_NAME.items()
}
"""The decompositions by operator."""
