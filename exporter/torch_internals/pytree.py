"""torch's trees of containers. The module is private by name, but only it knows the classes that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_pytree.py. Nothing can replace it: torch.export itself flattens inputs with it.
from torch.utils._pytree import (
    GetAttrKey,
    MappingKey,
    SequenceKey,
    TreeSpec,
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_leaves,
    tree_map,
    tree_map_with_path,
    tree_unflatten,
)

from .python_values import is_a

__all__ = [
    "GetAttrKey",
    "MappingKey",
    "SequenceKey",
    "TreeSpec",
    "keystr",
    "map_tensors",
    "register_pytree_node",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_leaves",
    "tree_map",
    "tree_map_with_path",
    "tree_unflatten",
]


def map_tensors(function: Callable[[torch.Tensor], Any], tree: Any) -> Any:
    """A copy of `tree` with another value for each tensor."""
    # NOTE: torch's `tree_map_only` uses `isinstance`.
    return tree_map(lambda leaf: function(leaf) if is_a(leaf, torch.Tensor) else leaf, tree)
