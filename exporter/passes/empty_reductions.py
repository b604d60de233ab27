"""Means and truth values of tensors that may be empty: kernels of ONNX Runtime give 0 for a mean and true for `any` (read in 1.31).

And variances whose correction is a size, or that keep all dims.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals import shape_env
from onnxplain.torch_internals.decompositions import decomposition_of
from onnxplain.torch_internals.operators import OpOverload

from .graphs import arguments

_aten = torch.ops.aten
_NARROW = (torch.float16, torch.bfloat16)


def _mean(x: Tensor, dim: list[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """The sum, divided by the number of elements: NaN if there is none."""
    dtype = dtype or x.dtype
    # NOTE: the sum, unlike the mean, may overflow in a narrow dtype.
    total = x.sum(dim, keepdim, dtype=torch.float32 if dtype in _NARROW else dtype)
    return (total / _count(x, dim)).to(dtype)


def _any(x: Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether there is an element that is not zero."""
    found = (x if x.dtype is torch.bool else x != 0).sum(dim, keepdim) > 0
    return found.to(torch.uint8) if x.dtype is torch.uint8 else found


def _var_mean(x: Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The sum of squared distances to the mean, divided by the number of elements less `correction`, which is 1 by default; the mean."""
    mean = _mean(x, dim, keepdim=True)
    distance = x - mean
    squares = (distance * distance.conj()).real if x.is_complex() else distance * distance
    count = _count(x, dim) - (1 if correction is None else correction)
    variance: Tensor = squares.sum(dim, keepdim) / torch.sym_max(count, 0)
    return variance, mean.sum(dim, keepdim)


def _var(*args: Any, **kwargs: Any) -> Tensor:
    return _var_mean(*args, **kwargs)[0]


def _std(*args: Any, **kwargs: Any) -> Tensor:
    return _var(*args, **kwargs).sqrt()


def _std_mean(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    variance, mean = _var_mean(*args, **kwargs)
    return variance.sqrt(), mean


def _of_all(function: Callable[..., Any], x: Tensor, unbiased: bool = True) -> Any:
    return function(x, correction=int(unbiased))


def _of_dims(function: Callable[..., Any], x: Tensor, dim: list[int] | None, unbiased: bool = True, keepdim: bool = False) -> Any:
    return function(x, dim, correction=int(unbiased), keepdim=keepdim)


def _count(x: Tensor, dim: list[int] | None) -> int:
    count = 1
    for each in dim or range(x.ndim):
        count *= x.shape[each]
    return count


_STATISTICS: Mapping[Any, Callable[..., Any]] = {_aten.var: _var, _aten.std: _std, _aten.var_mean: _var_mean, _aten.std_mean: _std_mean}
_OURS: Mapping[OpOverload, Callable[..., Any]] = {
    _aten.mean.default: _mean,
    _aten.mean.dim: _mean,
    _aten.any.default: _any,
    _aten.any.dim: _any,
    _aten.any.dims: _any,
    **{operator.default: functools.partial(_of_all, function) for operator, function in _STATISTICS.items()},
    **{operator.dim: functools.partial(_of_dims, function) for operator, function in _STATISTICS.items()},
    **{operator.correction: function for operator, function in _STATISTICS.items()},
}
_LOSSES = (_aten.mse_loss, _aten.l1_loss, _aten.smooth_l1_loss, _aten.huber_loss, _aten.kl_div)
_MEANS = frozenset(operator.default for operator in _LOSSES)
"""The losses that torch decomposes into a mean, among others."""


OPERATORS = frozenset(_OURS) | _MEANS
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition for a node that reduces dims which may have size 0, or has a size as correction; None for others."""
    target = node.target
    if target not in OPERATORS:
        return None
    assert isinstance(target, OpOverload)
    given = arguments(node)
    value = given["self"].meta.get("val") if isinstance(given["self"], torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or not value.ndim:
        return None
    dims = given.get("dim")
    reduced = value.shape if dims is None or dims == [] else [value.shape[dim] for dim in ([dims] if isinstance(dims, int) else dims)]
    # NOTE: translations take the correction as a number.
    is_size = isinstance(given.get("correction"), torch.fx.Node)
    # NOTE: torch's decomposition of such a variance fails (seen in 2.13).
    keeps_all = "correction" in given and given["keepdim"] and not dims
    return (_OURS.get(target) or decomposition_of(target)) if is_size or keeps_all or any(map(shape_env.may_be_zero, reduced)) else None
