"""Operators that make numbers or sizes from the data in tensors."""

from __future__ import annotations

import torch

from onnxplain.torch_internals.operators import OpOverload

_ATEN = torch.ops.aten
_UNTAGGED = frozenset(
    {_ATEN.repeat_interleave.self_Tensor, _ATEN.where.default, _ATEN.nonzero_numpy.default, _ATEN.tensor_split.tensor_indices_or_sections}
)
"""Operators that make sizes from data by operators that torch tags so."""


def makes_numbers(node: torch.fx.Node) -> bool:
    """Whether an operator makes, or may make, a size or a number from data."""
    if node.target is _ATEN.index.Tensor:
        indices = [each.meta.get("val") for each in node.args[1] if isinstance(each, torch.fx.Node)]  # type: ignore[union-attr]  # a list
        return any(isinstance(each, torch.Tensor) and each.dtype in (torch.bool, torch.uint8) for each in indices)
    if not isinstance(node.target, OpOverload):
        return False
    tags, is_torchs = node.target.tags, node.target.namespace in ("aten", "prims")
    return not is_torchs or node.target in _UNTAGGED or torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags
