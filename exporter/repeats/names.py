"""The names of values in a graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import onnx_ir as ir


class Names:
    """Finds names that no value of a graph has.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: ir.Graph) -> None:
        inner = list(graph.subgraphs())
        values = itertools.chain(graph.inputs, graph.initializers.values(), *(each.inputs for each in inner))
        made = (value for node in (graph.all_nodes() if inner else graph) for value in node.outputs)
        self._taken = {value.name or "" for value in itertools.chain(values, made)}
        self._count = len(self._taken)

    def take(self, names: Iterable[str | None]) -> bool:
        """Takes names. Returns False if one was taken before."""
        for name in names:
            if name in self._taken:
                return False
            self._taken.add(name or "")
        return True

    def free(self, wanted: str | None) -> str:
        """`wanted`, with a number behind it if it is taken; `val` and a number if nothing is wanted. The name is taken then."""
        name = wanted or self._next()
        number = 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}" if wanted else self._next()
        self._taken.add(name)
        return name

    def _next(self) -> str:
        self._count += 1
        return f"val_{self._count}"
