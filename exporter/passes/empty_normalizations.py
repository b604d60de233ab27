"""Normalizations of tensors that may be empty, or are FLOAT64: ONNX Runtime's kernel ends the process, or there is none (seen in 1.31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals import shape_env

from .graphs import arguments

_aten = torch.ops.aten


def _group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    count, channels, *rest = input.shape
    groups = input.reshape(count, num_groups, channels // num_groups, *rest)
    variance, mean = torch.var_mean(groups, list(range(2, groups.ndim)), correction=0, keepdim=True)
    normal = ((groups - mean) * torch.rsqrt(variance + eps)).reshape(input.shape)
    column = (channels, *[1] * len(rest))
    scaled = normal if weight is None else normal * weight.reshape(column)
    return scaled if bias is None else scaled + bias.reshape(column)


def _instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: None, var: None, use: bool, momentum: float, eps: float, *_: Any
) -> Tensor:
    del mean, var, use, momentum
    return _group_norm(input, input.shape[1], weight, bias, eps)


OPERATORS = frozenset({_aten.group_norm.default, _aten.instance_norm.default})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition for a normalization of a tensor that may be empty, or is FLOAT64; None for others."""
    if node.target is _aten.group_norm.default:
        function: Callable[..., Any] = _group_norm
    elif node.target is _aten.instance_norm.default and arguments(node)["use_input_stats"]:
        function = _instance_norm
    else:
        return None
    value = node.args[0].meta.get("val") if isinstance(node.args[0], torch.fx.Node) else None
    if not isinstance(value, Tensor):
        return None
    return function if value.dtype is torch.float64 or any(map(shape_env.may_be_zero, value.shape)) else None
