"""The samples of op_db as modules: the tensors of a sample are the inputs, everything else is part of the module."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64)
_UNWRITTEN = ("empty", "new_empty", "resize_", "resize_as_")
"""Operators whose results hold whatever the memory held before."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """An operator and the dtype of its inputs.

    Attributes:
        operator: The name of the OpInfo, with its variant where it has one.
        dtype: Such as `float32`.
    """

    operator: str
    dtype: str

    @property
    def info(self) -> OpInfo:
        """The entry of op_db."""
        return _INFOS[self.operator]

    @property
    def has_values(self) -> bool:
        """False if the results are random or hold uninitialized memory."""
        # NOTE: op_db seeds the generator in the function that calls a random operator, so runs do not differ.
        seeds = "wrapper_set_seed" in getattr(getattr(self.info.op, "__code__", None), "co_names", ())
        return not seeds and not any(each in self.operator for each in _UNWRITTEN)


def pairs() -> list[Pair]:
    """Every operator with each of the dtypes that it supports on the CPU."""
    return [Pair(name, str(dtype)[6:]) for name, info in _INFOS.items() for dtype in DTYPES if info.supports_dtype(dtype, "cpu")]


def samples(pair: Pair, count: int) -> Iterator[tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]:
    """The first samples, each as a module and its inputs. The same in each run."""
    torch.manual_seed(0)
    for sample in itertools.islice(pair.info.sample_inputs("cpu", getattr(torch, pair.dtype), requires_grad=False), count):
        yield _module(pair.info, sample)


def leaves(value: Any) -> Iterator[Any]:
    """What is in nested containers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    else:
        yield value


class _Sample(torch.nn.Module):
    def __init__(self, call: Callable[..., Any], arguments: Any) -> None:
        super().__init__()
        self.call, self.arguments = call, arguments

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = _mapped(self.arguments, lambda each: next(rest) if each is _TENSOR else each)
        return self.call(*args, **kwargs)


def _module(info: OpInfo, sample: SampleInput) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    tensors: list[torch.Tensor] = []

    def taken(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        tensors.append(value.detach())
        return _TENSOR

    arguments = _mapped(((sample.input, *sample.args), sample.kwargs), taken)
    return _Sample(info.op, arguments).eval(), tuple(tensors)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        made: Sequence[Any] = [_mapped(each, change) for each in value]
        return tuple(made) if type(value) is tuple else type(value)(*made) if hasattr(value, "_fields") else made
    return change(value)


_TENSOR = "<tensor>"
_INFOS = {info.name + (f".{info.variant_test_name}" if info.variant_test_name else ""): info for info in op_db}
