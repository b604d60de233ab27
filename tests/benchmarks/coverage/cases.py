"""The samples of PyTorch's databases as modules: the tensors of a sample are the inputs, everything else is part of the module."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64)
_UNWRITTEN = ("empty", "new_empty", "resize_", "resize_as_")
"""Operators whose results hold whatever the memory held before."""
_UP_TO_SIGNS = ("linalg.eig", "linalg.svd", "svd", "svd_lowrank", "pca_lowrank")
"""Operators whose vectors are unique only up to their signs or phases. Their samples tell what of them to compare."""
_POSITIONS: dict[str, tuple[int, int]] = {
    "argsort": (0, -1),
    "kthvalue": (1, -1),
    "median": (0, -1),
    "mode": (0, -1),
    "nanmedian": (0, -1),
    "sort": (0, -1),
    "topk": (1, -1),
}
"""Operators that return positions, any of those of equal elements: where their argument `dim` is, and its default."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """An operator and the dtype of its inputs.

    Attributes:
        operator: The name of the OpInfo, with its variant where it has one; for a module its class, such as `nn.Linear`.
        dtype: Such as `float32`.
    """

    operator: str
    dtype: str

    @property
    def has_values(self) -> bool:
        """False if the results are random or hold uninitialized memory."""
        if self.operator in _MODULES:
            return True
        # NOTE: op_db seeds the generator in the function that calls a random operator, so runs do not differ.
        seeds = "wrapper_set_seed" in getattr(getattr(_OPERATORS[self.operator].op, "__code__", None), "co_names", ())
        return not seeds and not any(each in self.operator for each in _UNWRITTEN)


Compared = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], Sequence[torch.Tensor]]


@dataclasses.dataclass(frozen=True)
class Sample:
    """A sample of an operator or a module.

    Attributes:
        module: Takes the tensors of the sample.
        inputs: Those tensors.
        compared: Turns the results for some inputs into those that must be equal.
    """

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    compared: Compared


def pairs() -> list[Pair]:
    """Every operator with each of the dtypes that it supports on the CPU."""
    return [Pair(name, str(dtype)[6:]) for name, info in _OPERATORS.items() for dtype in DTYPES if info.supports_dtype(dtype, "cpu")]


def module_pairs() -> list[Pair]:
    """Every module of torch.nn in single precision."""
    return [Pair(name, "float32") for name in _MODULES]


def samples(pair: Pair, count: int, seed: int | None = None, *, with_dims: bool = False) -> Iterator[Sample]:
    """The first samples of a pair, or random ones; only those whose first input has dims if asked for. The same in each run."""
    for each in (torch.manual_seed, random.seed, np.random.seed):
        each(0)
    every = _of_module(_MODULES[pair.operator], pair) if pair.operator in _MODULES else _of_operator(_OPERATORS[pair.operator], pair)
    if with_dims:
        every = (each for each in every if each.inputs and each.inputs[0].ndim)
    if seed is None:
        return itertools.islice(every, count)
    known = list(every)
    return iter(random.Random(f"{seed} {pair}").sample(known, min(count, len(known))))


def leaves(value: Any) -> Iterator[Any]:
    """What is in nested containers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    else:
        yield value


class _Call(torch.nn.Module):
    def __init__(self, call: Callable[..., Any], arguments: Any) -> None:
        super().__init__()
        self.call, self.arguments = call, arguments

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = _mapped(self.arguments, lambda each: next(rest) if each is _TENSOR else each)
        return self.call(*args, **kwargs)


def _of_operator(info: OpInfo, pair: Pair) -> Iterator[Sample]:
    for sample in info.sample_inputs("cpu", getattr(torch, pair.dtype), requires_grad=False):
        module, inputs = _module(info.op, ((sample.input, *sample.args), sample.kwargs))
        yield Sample(module, inputs, _compared(info, sample))


def _of_module(info: ModuleInfo, pair: Pair) -> Iterator[Sample]:
    dtype = getattr(torch, pair.dtype)
    for each in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=False):
        if each.forward_input is not None:
            made = info.module_cls(*each.constructor_input.args, **each.constructor_input.kwargs).eval().to(dtype)
            if info.is_lazy:
                made(*each.forward_input.args, **each.forward_input.kwargs)
            module, inputs = _module(made, (each.forward_input.args, each.forward_input.kwargs))
            yield Sample(module, inputs, lambda results, _: results)


def _module(call: Callable[..., Any], arguments: Any) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    tensors: list[torch.Tensor] = []

    def taken(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        tensors.append(value.detach())
        return _TENSOR

    return _Call(call, _mapped(arguments, taken)).eval(), tuple(tensors)


def _compared(info: OpInfo, sample: SampleInput) -> Compared:
    if any(info.name.startswith(each) for each in _UP_TO_SIGNS):
        return lambda results, _: list(leaves(sample.output_process_fn_grad(tuple(results) if len(results) > 1 else results[0])))
    if info.name not in _POSITIONS:
        return lambda results, _: results
    place, default = _POSITIONS[info.name]
    dim = sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else default)

    def with_elements(results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        *values, positions = results
        if not values and info.name != "argsort":
            return results
        keeps = positions.ndim == inputs[0].ndim
        found = inputs[0].gather(dim, positions if keeps else positions.unsqueeze(dim))
        return [*values, found if keeps else found.squeeze(dim)]

    return with_elements


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        made: Sequence[Any] = [_mapped(each, change) for each in value]
        return tuple(made) if type(value) is tuple else type(value)(*made) if hasattr(value, "_fields") else made
    return change(value)


_TENSOR = "<tensor>"
_OPERATORS: dict[str, OpInfo] = {info.name + (f".{info.variant_test_name}" if info.variant_test_name else ""): info for info in op_db}
_MODULES: dict[str, ModuleInfo] = {info.name: info for info in module_db}
