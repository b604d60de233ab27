"""Operators whose ONNX Runtime kernels fail on empty tensors (seen in 1.31): Scan, Einsum, a pool over everything and a split.

A Scan takes one element more along each dim that may be empty, and the result leaves it out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals import shape_env
from onnxplain.torch_internals.decompositions import decomposition_of
from onnxplain.torch_internals.operators import OpOverload

from .graphs import arguments

_aten = torch.ops.aten
_RUNNING = frozenset({_aten.cumprod.default, _aten.cummax.default, _aten.cummin.default, _aten.logcumsumexp.default})
"""Operators whose results have the shape of their input. What is appended to a dim changes nothing before it."""
_MEAN_POOLS = frozenset({_aten.adaptive_avg_pool1d.default, _aten.adaptive_avg_pool2d.default, _aten.adaptive_avg_pool3d.default})
_SPLITS = frozenset({_aten.split.Tensor, _aten.unsafe_split.Tensor})


def _appended(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in dims:
        x = torch.cat([x, x.new_ones([1 if at == dim else size for at, size in enumerate(x.shape)])], dim)
    return x


def _shortened(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in dims:
        x = x.narrow(dim, 0, x.shape[dim] - 1)
    return x


def _running(operator: OpOverload, dims: Sequence[int], self: Tensor, *args: Any, **kwargs: Any) -> Any:
    results = operator(_appended(self, dims), *args, **kwargs)
    return tuple(_shortened(each, dims) for each in results) if isinstance(results, tuple) else _shortened(results, dims)


def _mean(pooled: int, self: Tensor, output_size: Sequence[int]) -> Tensor:
    del output_size
    return self.mean(list(range(-pooled, 0)), keepdim=True)


def _parts(count: int, self: Tensor, split_size: Any, dim: int = 0) -> list[Tensor]:
    return [torch.ops.aten.slice.Tensor(self, dim, index * split_size, (index + 1) * split_size) for index in range(count)]


OPERATORS = _RUNNING | _MEAN_POOLS | _SPLITS | {_aten.einsum.default}
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition for a node of these operators whose input may be empty where it matters; None for others."""
    target = node.target
    if not isinstance(target, OpOverload):
        return None
    if target in _RUNNING:
        empty = _may_be_empty(node.args[0])
        return functools.partial(_running, target, empty) if empty else None
    if target in _MEAN_POOLS:
        size = arguments(node)["output_size"]
        value = arguments(node)["self"].meta.get("val")
        # NOTE: nor is there a kernel for FLOAT64.
        fails = _may_be_empty(node.args[0]) or (isinstance(value, Tensor) and value.dtype is torch.float64)
        pools_all = all(each == 1 for each in size) and fails
        return functools.partial(_mean, len(size)) if pools_all else None
    if target in _SPLITS:
        given = arguments(node)
        sizes = given["self"].meta["val"].shape[given["dim"]], given["split_size"]
        # NOTE: SplitToSequence refuses parts of size 0, and makes no part at all of an empty dim, where PyTorch makes one.
        return functools.partial(_parts, len(node.meta["val"])) if any(map(_may_be_zero, sizes)) else None
    if target is _aten.einsum.default:
        operands = arguments(node)["tensors"]
        return decomposition_of(target) if any(_may_be_empty(each) for each in operands) else None
    return None


def _may_be_zero(size: Any) -> bool:
    size = size.meta.get("val") if isinstance(size, torch.fx.Node) else size
    return isinstance(size, torch.SymInt) and shape_env.may_be_zero(size, whatever_torch_found=True)


def _may_be_empty(argument: Any) -> list[int]:
    """The dims that may have size 0."""
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    return [dim for dim, size in enumerate(value.shape) if shape_env.may_be_zero(size)] if isinstance(value, Tensor) else []
