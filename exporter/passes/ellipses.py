"""Einsum whose ellipsis stands for different numbers of dims, which ONNX does not allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxplain.torch_internals.decompositions import decomposition_of

from .graphs import arguments

_EINSUM = torch.ops.aten.einsum.default


OPERATORS = frozenset({_EINSUM})
"""The operators that `decomposition` is about."""


def decomposition(node: torch.fx.Node) -> Callable[..., Any] | None:
    """The decomposition of such a node; None for other nodes."""
    if node.target is not _EINSUM:
        return None
    given = arguments(node)
    terms = given["equation"].replace(" ", "").partition("->")[0].split(",")
    if "..." not in given["equation"]:
        return None
    ranks = {
        operand.meta["val"].ndim - len(term.replace("...", ""))
        for term, operand in zip(terms, given["tensors"], strict=True)
        if "..." in term
    }
    return decomposition_of(_EINSUM) if len(ranks) > 1 else None
