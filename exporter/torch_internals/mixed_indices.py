"""Indices of several kinds, such as `x[:, n // 2] = 0` and `x[i, :, places]`, where `n` is a size and `i` a tensor of one integer.

torch takes such numbers only alone, or to read between slices: otherwise it fixes the size, or needs the data. While a capture runs,
the dims with a number are selected first, and the other indices apply to what is left. That is what they mean to torch: unlike in numpy,
a number beside tensors is not one of them. Nor does torch take a tensor of one truth, as in `x[x.sum() > 0] = 1`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import torch
from torch import Tensor

from . import shape_env, tensor_lists
from .python_values import is_a

shape_env.leave_out(__file__)

_WHOLE = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})
_MASKS = frozenset({torch.bool, torch.uint8})


def plain(function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call of torch; if it reads or writes by such indices, other arguments that mean the same."""
    reads, writes = function is Tensor.__getitem__ and len(args) == 2, function is Tensor.__setitem__ and len(args) == 3
    if kwargs or not (reads or writes):
        return args
    tensor, index, *value = args
    # NOTE: torch takes a list that holds a tensor for a tuple (read in torch 2.11, 2.13 and 2.15, python_variable_indexing.cpp).
    is_tuple = isinstance(index, tuple) or (isinstance(index, list) and any(is_a(each, Tensor) for each in index))
    index = tuple(map(_in_one, index)) if is_tuple else _in_one(index)
    return (*((_read if reads else _written)(tensor, index) or (tensor, index)), *value)


def _in_one(item: Any) -> Any:
    """A list of sizes and of tensors of one number as one tensor."""
    symbolic = isinstance(item, list | tuple) and any(isinstance(each, torch.SymInt) or is_a(each, Tensor) for each in item)
    plain = symbolic and all(_is_number(each) or type(each) is int for each in item)
    return tensor_lists.stacked(item, torch.int64) if plain else item


def _read(tensor: Tensor, index: Any) -> tuple[Tensor, Any] | None:
    indices = index if isinstance(index, tuple) else (index,)
    # NOTE: without tensors and lists, torch takes the numbers itself.
    mixed = any(map(_is_number, indices)) and any(map(_is_advanced, indices))
    return _plain(tensor, indices) if mixed or any(map(_is_truth, indices)) else None


def _written(tensor: Tensor, index: Any) -> tuple[Tensor, Any] | None:
    indices = index if isinstance(index, tuple) else (index,)
    return _plain(tensor, indices) if any(_is_number(each) or _is_truth(each) for each in indices) else None


def _is_number(item: object) -> bool:
    """Whether torch selects by `item`, which is no plain number."""
    return isinstance(item, torch.SymInt) or (is_a(item, Tensor) and item.ndim == 0 and item.dtype in _WHOLE)


def _is_truth(item: object) -> bool:
    return is_a(item, Tensor) and item.ndim == 0 and item.dtype in _MASKS


def _is_advanced(item: object) -> bool:
    return isinstance(item, list) or (is_a(item, Tensor) and not _is_number(item))


def _plain(tensor: Tensor, indices: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]] | None:
    """A view of the dims that have no number, and the other indices; None for kinds of indices that are not known.

    One truth picks all or nothing, in a new dim of size 1.
    """
    spans = [_span(item) for item in indices]
    if None in spans or sum(isinstance(item, EllipsisType) for item in indices) > 1:
        return None
    left = tensor.ndim - sum(filter(None, spans))
    steps: list[tuple[Callable[..., Tensor], tuple[Any, ...]]] = []
    dim, others = 0, []
    for item, span in zip(indices, spans, strict=True):
        if _is_number(item) or type(item) is int:
            steps.append((Tensor.select, (dim, item.item() if is_a(item, Tensor) else item)))
        elif _is_truth(item):
            steps.append((Tensor.unsqueeze, (dim,)))
            others.append(item.reshape(1))
        else:
            others.append(item)
        dim += left if isinstance(item, EllipsisType) else span or 0
    for method, where in reversed(steps):
        tensor = method(tensor, *where)
    # NOTE: an assignment needs an index, also where numbers select one element.
    return tensor, tuple(others) or (...,)


def _span(item: object) -> int | None:
    """How many dims of a tensor `item` indexes, without those of an ellipsis; None if that is not known."""
    if item is None or isinstance(item, EllipsisType):
        return 0
    if is_a(item, Tensor):
        return item.ndim if item.dtype in _MASKS else 1
    numbers = isinstance(item, list) and all(type(each) is int for each in item)
    return 1 if numbers or isinstance(item, slice | torch.SymInt) or type(item) is int else None
