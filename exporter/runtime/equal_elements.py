"""Results that PyTorch leaves open: positions of elements that operators choose among equal ones, and signs of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxplain.passes import arguments
from onnxplain.registry import qualified_name
from onnxplain.torch_internals.operators import OpOverload

from .comparison import compare

_SEVERAL = frozenset({"aten::sort", "aten::sort.stable", "aten::topk"})
"""The operators that return several positions along the dim, each once."""
_ONE = frozenset({"aten::kthvalue", "aten::mode", "aten::median.dim", "aten::nanmedian.dim"})

_VECTORS = {"aten::_linalg_eigh": (1,), "aten::_linalg_svd": (0, 2)}
"""The results of operators that are vectors whose opposites are as right."""


def is_opposite(node: torch.fx.Node, wanted: torch.Tensor, got: torch.Tensor) -> bool:
    """Whether `got` are the vectors that PyTorch gives for `node`, but for their signs."""
    operator, *selected = node.args
    if not isinstance(operator, torch.fx.Node) or not isinstance(operator.target, OpOverload) or got.shape != wanted.shape:
        return False
    return (
        selected[:1] != []
        and selected[0] in _VECTORS.get(qualified_name(operator.target), ())
        and not compare(got.abs(), wanted.abs()).differs
    )


def chosen_from(node: torch.fx.Node) -> torch.fx.Node | None:
    """The node of the elements whose positions an operator returns; None for other operators."""
    if not isinstance(node.target, OpOverload) or qualified_name(node.target) not in _SEVERAL | _ONE:
        return None
    elements = arguments(node)["self"]
    return elements if isinstance(elements, torch.fx.Node) else None


def is_other_choice(node: torch.fx.Node, value_of: Callable[[torch.fx.Node], Any], got: torch.Tensor) -> bool:
    """Whether `got` are positions of elements that equal those whose positions PyTorch gives for `node`.

    Args:
        node: The node that selects a result of an operator.
        value_of: The value of a node that it depends on.
        got: The value of the exported model for it.
    """
    operator, *selected = node.args
    if not isinstance(operator, torch.fx.Node) or selected != [1] or not isinstance(operator.target, OpOverload):
        return False
    name, given = qualified_name(operator.target), arguments(operator)
    if name not in _SEVERAL | _ONE or given.get("stable") or not isinstance(given["self"], torch.fx.Node):
        return False
    elements, (wanted, positions) = value_of(given["self"]), value_of(operator)
    if got.shape != positions.shape or got.dtype != positions.dtype or not elements.ndim:
        return False
    dim, one = given["dim"], name in _ONE and not given["keepdim"]
    if one:
        wanted, got = wanted.unsqueeze(dim), got.unsqueeze(dim)
    if not bool(((got >= 0) & (got < elements.shape[dim])).all()):
        return False
    chosen = elements.gather(dim, got)
    equal = (chosen == wanted) | ((chosen != chosen) & (wanted != wanted))
    return bool(equal.all()) and (name in _ONE or bool(got.sort(dim).values.diff(dim=dim).all()))
