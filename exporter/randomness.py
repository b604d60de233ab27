"""Operators that draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import torch

_SWITCHES = frozenset({"train", "training", "dropout_p"})
"""Arguments of operators that draw in training only, which has a rule of its own."""


def draws(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """The nodes of `graph` that draw random numbers whatever mode the model is in."""
    for node in graph.nodes:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
            continue
        if not any(argument.name in _SWITCHES for argument in target._schema.arguments):
            yield node
