"""Tensors made of lists of tensors and sizes, such as `torch.tensor([h, w])`: torch reads the data of those, and a capture has none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

_SYMBOLIC = (torch.SymBool, torch.SymInt, torch.SymFloat)
_BY_TYPE = {torch.SymBool: torch.bool, bool: torch.bool, torch.SymInt: torch.int64, int: torch.int64}


def leaves(data: Any) -> Iterator[Any]:
    """What nested lists and tuples hold, such as the heights and widths of several images."""
    if isinstance(data, list | tuple):
        for each in data:
            yield from leaves(each)
    else:
        yield data


def holds_tensors(data: Any) -> bool:
    """Whether `data` are nested lists of numbers, of which at least one is a tensor."""
    return any(isinstance(each, Tensor) for each in _numbers(data))


def made(function: Callable[..., Tensor], data: Any, **options: Any) -> Tensor:
    """What `function`, torch.tensor or a function like it, makes of `data`.

    NOTE: torch.export recognizes torch.tensor, to make tensors of sizes, but not while another function is in its place
    (read in torch 2.13, _export/non_strict_utils.py).
    """
    given = {name: value for name, value in options.items() if value not in (None, False)}
    is_known = not any(isinstance(each, (Tensor, *_SYMBOLIC)) for each in _numbers(data))
    if is_known or isinstance(data, Tensor) or not given.keys() <= {"dtype", "device"}:
        return function(data, **options)
    return stacked(data, **given)


def stacked(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
    """The tensor that torch.tensor makes of such lists.

    Args:
        data: Nested lists; `holds_tensors` is true for them.
        dtype: The dtype of the result; None for the one to which those of the numbers promote.
        device: The device of the result; None for the default device.
    """
    dtype = dtype or functools.reduce(torch.promote_types, map(_dtype, leaves(data)))
    device = torch.get_default_device() if device is None else device
    if isinstance(data, list | tuple):
        return torch.stack([stacked(each, dtype, device) for each in data])
    if isinstance(data, Tensor):
        return data.detach().to(device=device, dtype=dtype)
    return torch.scalar_tensor(data, dtype=dtype, device=device)


def _numbers(data: Any) -> list[Any]:
    """The numbers in nested lists; none if there is something else as well, such as an empty list."""
    if not isinstance(data, list | tuple):
        is_number = isinstance(data, (bool, int, float, *_SYMBOLIC)) or (isinstance(data, Tensor) and data.ndim == 0)
        return [data] if is_number else []
    parts = [_numbers(each) for each in data]
    return [number for part in parts for number in part] if all(parts) else []


def _dtype(value: Any) -> torch.dtype:
    return value.dtype if isinstance(value, Tensor) else _BY_TYPE.get(type(value), torch.get_default_dtype())
