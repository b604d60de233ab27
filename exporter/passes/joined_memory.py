"""Copies that are views where a size is 1: `reshape` joins dims of size 1 whatever their strides, and then a write is seen elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch

from onnxplain.torch_internals import pytree, shape_env
from onnxplain.torch_internals.fake_tensors import share_memory
from onnxplain.torch_internals.operators import OpOverload, is_composite
from onnxplain.torch_internals.symbolic_expressions import expression_of, number_at

from . import aliases
from .views import Memory


class Copies:
    """The copies of a program that are views where a size is 1, and what is written and read of them.

    Attributes:
        assumed: Each size that must not be 1, with the node that writes what another one reads later.
    """

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self.assumed: dict[sympy.Symbol, torch.fx.Node] = {}
        self._may_be_one = {symbol for symbol, limits in program.range_constraints.items() if limits.lower <= 1}
        self._pairs: list[tuple[Memory, Memory, sympy.Symbol]] = []
        self._stale: dict[Memory, dict[sympy.Symbol, torch.fx.Node]] = {}

    def record(self, node: torch.fx.Node, result: Memory, read: Mapping[torch.fx.Node, Memory]) -> None:
        """Records the result of `node`, if it is new memory in the graph only.

        Args:
            node: The node.
            result: The memory of its result.
            read: The memory of each of its inputs.
        """
        if not (isinstance(node.target, OpOverload) and is_composite(node.target)):
            return
        for source in aliases.may_share_memory_with(node):
            if source in read and read[source] is not result:
                self._pairs += [(result, read[source], symbol) for symbol in _joining(node, source, self._may_be_one)]

    def write(self, memory: Memory, node: torch.fx.Node) -> None:
        """Records that `node` writes to `memory`."""
        for one, other, symbol in self._pairs:
            if memory in (one, other):
                self._stale.setdefault(other if memory is one else one, {}).setdefault(symbol, node)

    def read(self, memory: Memory) -> None:
        """Records that a node reads the elements of `memory`."""
        for symbol, writer in self._stale.get(memory, {}).items():
            self.assumed.setdefault(symbol, writer)


def _joining(node: torch.fx.Node, source: torch.fx.Node, may_be_one: set[sympy.Symbol]) -> Iterator[sympy.Symbol]:
    """The sizes that make the result of `node` a view of its input `source` where they are 1."""
    value = source.meta.get("val")
    sizes: list[Any] = [size for size in value.shape if isinstance(size, torch.SymInt)] if isinstance(value, torch.Tensor) else []
    symbols = may_be_one & {symbol for size in sizes for symbol in expression_of(size).free_symbols}
    example = shape_env.examples(shape_env.of(sizes[0])) if symbols else {}
    for symbol in sorted(symbols & example.keys(), key=str):
        if example[symbol] > 1 and _is_view(node, source, {**example, symbol: 1}):
            yield symbol


def _is_view(node: torch.fx.Node, source: torch.fx.Node, sizes: Mapping[sympy.Symbol, int]) -> bool:
    """Whether the result of `node` has the memory of its input `source` at `sizes`."""

    def resized(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return number_at(value, sizes)
        shape, strides = ([number_at(each, sizes) for each in known] for known in (value.shape, value.stride()))
        return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")

    try:
        values = {each: pytree.tree_map(resized, each.meta.get("val")) for each in node.all_input_nodes}
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
        assert callable(node.target)
        made = pytree.tree_leaves(node.target(*args, **kwargs))
    except Exception:  # noqa: BLE001  operators refuse sizes with any exception
        return False
    return any(share_memory(each, values[source]) for each in made if isinstance(each, torch.Tensor))
