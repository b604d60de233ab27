"""The names of the nodes in an FX graph."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from .symbols import Attribute

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/graph.py.
_NAMESPACE = Attribute("torch.fx.graph:Graph._graph_namespace", without="exports of models with many equal layers take longer")
_USED = Attribute("torch.fx.graph:_Namespace._used_names", without=_NAMESPACE.without)


def reserve(graph: torch.fx.Graph, names: Iterable[str]) -> None:
    """Keeps nodes that a graph gets from now on from having `names`."""
    used = _USED.of(_NAMESPACE.of(graph))
    if used is not None:
        used.update(names)
