"""Resizing of double-precision tensors, for which ONNX Runtime has a kernel in few modes, and one that computes places in floats (1.31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onnxplain.torch_internals.decompositions import decomposition_of
from onnxplain.torch_internals.operators import OpOverload, schema

_RESIZING = ("aten::upsample_", "aten::_upsample_nearest_exact")


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """Torch's decomposition for a node that resizes a FLOAT64 tensor; None for others."""
    target = node.target
    if not isinstance(target, OpOverload) or not schema(target).name.startswith(_RESIZING):
        return None
    value = node.args[0].meta.get("val") if isinstance(node.args[0], torch.fx.Node) else None
    return decomposition_of(target) if isinstance(value, Tensor) and value.dtype is torch.float64 else None
