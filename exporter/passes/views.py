"""Writes and views without side effects, as torch's functionalization makes them while it traces.

A write to a view becomes a new value of the tensor that it is a view of, and other views are taken anew from that value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from onnxplain.registry import qualified_name
from onnxplain.torch_internals.operators import OpOverload

from .graphs import arguments, inherit

aten = torch.ops.aten

_SAME_ORDER = frozenset(
    {
        *("alias", "contiguous", "detach", "lift_fresh", "positive", "resolve_conj", "resolve_neg", "to", "type_as"),
        *("flatten", "ravel", "reshape", "reshape_as", "squeeze", "unflatten", "unsqueeze", "view", "view_as"),
        *("broadcast_to", "expand", "expand_as"),
    }
)
"""Views with the elements of their argument in the same order, if they have as many."""
_OWN_INVERSE = frozenset({"mT", "numpy_T", "swapaxes", "swapdims", "t", "transpose"})
_PIECES = {"chunk": None, "split": None, "split_with_sizes": None, "tensor_split": None, "hsplit": 1, "vsplit": 0, "dsplit": 2}
"""Operators that cut a tensor into pieces, and the dim that they cut; None if an argument tells."""


class Irreplaceable(Exception):
    """No operators without side effects are known for a write to a view."""


@dataclasses.dataclass(eq=False, slots=True)
class Memory:
    """Memory that tensors share.

    Attributes:
        origin: The node that made it.
        writes: The number of writes to it so far.
        is_lent: Whether a control flow operator may have returned it under another name.
    """

    origin: torch.fx.Node
    writes: int = 0
    is_lent: bool = False


@dataclasses.dataclass(eq=False, slots=True)
class View:
    """A tensor, or a list of tensors: the whole memory, or a view of another tensor.

    Attributes:
        maker: The node that made it.
        memory: The memory.
        base: The tensor that it is a view of; None for the whole memory.
        source: The value of `base` that `maker` takes.
        value: The node with its value after `writes` writes to the memory.
        writes: See `value`.
    """

    maker: torch.fx.Node
    memory: Memory
    base: View | None
    source: torch.fx.Node | None
    value: torch.fx.Node
    writes: int

    @classmethod
    def of_new_memory(cls, maker: torch.fx.Node) -> View:
        """The tensor that `maker` makes."""
        return cls(maker, Memory(maker), None, None, maker, 0)

    def view(self, maker: torch.fx.Node) -> View:
        """The view of this tensor that `maker` makes of its present value."""
        return View(maker, self.memory, self, self.value, maker, self.memory.writes)

    def present(self, graph: torch.fx.Graph) -> torch.fx.Node:
        """The node with the present value, which is inserted if need be."""
        if self.writes < self.memory.writes:
            assert self.base is not None, "every write renews the whole memory"
            base = self.base.present(graph)
            self.value = graph.node_copy(self.maker, lambda each: base if each is self.source else each)
            self.writes = self.memory.writes
        return self.value

    def write(self, value: torch.fx.Node, graph: torch.fx.Graph, writer: torch.fx.Node) -> None:
        """Makes `value` the present value, and updates the tensors that this one is a view of.

        Raises:
            Irreplaceable: This is a view that cannot be put back.
        """
        wholes: list[tuple[View, View, torch.fx.Node]] = []
        part = self
        while part.base is not None:
            # NOTE: a piece is selected from a list, which is a view of the tensor that was cut.
            whole = part.base.base if _is_selection(part.maker) else part.base
            assert whole is not None
            wholes.append((part, whole, whole.present(graph)))
            part = whole
        self.memory.writes += 1
        self.value, self.writes = value, self.memory.writes
        for part, whole, old in wholes:
            value = _Back(graph, whole, old, writer).put(part.maker, value)
            whole.value, whole.writes = value, self.memory.writes


class _Back:
    """Puts the new value of a view back into the tensor that it is a view of.

    Args:
        graph: The graph, at whose insertion point nodes are made.
        whole: The tensor.
        old: The node with its value before the write.
        writer: The node that writes, whose line the new nodes get.
    """

    def __init__(self, graph: torch.fx.Graph, whole: View, old: torch.fx.Node, writer: torch.fx.Node) -> None:
        self._graph = graph
        self._shape: Sequence[Any] = whole.maker.meta["val"].shape
        self._tensor: torch.Tensor = whole.maker.meta["val"]
        self._old = old
        self._writer = writer

    def put(self, maker: torch.fx.Node, value: torch.fx.Node) -> torch.fx.Node:
        """The tensor with `value` in place of the view that `maker` made of it."""
        if _is_selection(maker):
            return self._with_piece(maker, value)
        name = qualified_name(maker.target).removeprefix("aten::").partition(".")[0]
        given = arguments(maker)
        if name in _SAME_ORDER and self._tensor.dtype == maker.meta["val"].dtype:
            return self._reshaped(maker, value)
        match name:
            case "select":
                return self._call(aten.select_scatter.default, self._old, value, given["dim"], given["index"])
            case "slice":
                return self._with_slice(value, given["dim"], given["start"], given["end"], given["step"])
            case "narrow" if isinstance(given["start"], int) and isinstance(given["length"], int):
                start = given["start"] if given["start"] >= 0 else given["start"] + self._known_size(given["dim"])
                return self._with_slice(value, given["dim"], start, start + given["length"], 1)
            case "diagonal":
                return self._call(aten.diagonal_scatter.default, self._old, value, given["offset"], given["dim1"], given["dim2"])
            case "permute":
                dims = [dim % len(self._shape) for dim in given["dims"]]
                return self._call(aten.permute.default, value, [dims.index(dim) for dim in range(len(dims))])
            case "unfold":
                return self._without_windows(value, given["dimension"])
            case "movedim" | "moveaxis":
                return self._call(maker.target, value, given["destination"], given["source"])
            case _ if name in _OWN_INVERSE:
                return self._call(maker.target, value, *maker.args[1:])
            case "view_as_complex" | "view_as_real":
                return self._call(aten.view_as_real.default if name == "view_as_complex" else aten.view_as_complex.default, value)
        raise Irreplaceable

    def _with_piece(self, selection: torch.fx.Node, value: torch.fx.Node) -> torch.fx.Node:
        pieces, index = selection.args
        assert isinstance(pieces, torch.fx.Node)
        assert isinstance(index, int)
        name = qualified_name(pieces.target).removeprefix("aten::").partition(".")[0]
        given = arguments(pieces)
        index %= len(pieces.meta["val"])
        if name == "unbind":
            return self._call(aten.select_scatter.default, self._old, value, given["dim"], index)
        if name not in _PIECES:
            raise Irreplaceable
        dim = given["dim"] if _PIECES[name] is None else _PIECES[name] if len(self._shape) > 1 else 0
        sizes = [piece.shape[dim] for piece in pieces.meta["val"][: index + 1]]
        if not all(isinstance(size, int) for size in sizes):
            raise Irreplaceable
        return self._with_slice(value, dim, sum(sizes[:-1]), sum(sizes), 1)

    def _with_slice(self, value: torch.fx.Node, dim: Any, start: Any, end: Any, step: Any) -> torch.fx.Node:
        if (start is None or _is_number(start, 0)) and (end is None or _is_at_least(end, self._shape[dim])) and _is_number(step, 1):
            return value
        return self._call(aten.slice_scatter.default, self._old, value, dim, start, end, step)

    def _reshaped(self, maker: torch.fx.Node, value: torch.fx.Node) -> torch.fx.Node:
        part: Sequence[Any] = maker.meta["val"].shape
        if [str(size) for size in part] == [str(size) for size in self._shape]:
            return value
        if qualified_name(maker.target).startswith(("aten::expand", "aten::broadcast_to")):
            # NOTE: elements that are repeated cannot be written, but an expansion may only add dims of size 1.
            longer = len(part) - len(self._shape)
            if [str(size) for size in part] != ["1"] * longer + [str(size) for size in self._shape]:
                raise Irreplaceable
        return self._call(aten.reshape.default, value, [self._size(dim) for dim in range(len(self._shape))])

    def _without_windows(self, value: torch.fx.Node, dim: int) -> torch.fx.Node:
        # NOTE: the windows hold each element once; writes through others are refused.
        rank = len(self._shape)
        dim %= max(rank, 1)
        order = [*range(dim + 1), rank, *range(dim + 1, rank)]
        ordered = self._call(aten.permute.default, value, order, result=value.meta["val"].permute(order)) if rank else value
        return self._call(aten.reshape.default, ordered, [self._size(axis) for axis in range(rank)])

    def _size(self, dim: int) -> Any:
        size = self._shape[dim]
        return size if isinstance(size, int) else self._call(aten.sym_size.int, self._old, dim, result=size)

    def _known_size(self, dim: int) -> int:
        if isinstance(size := self._shape[dim], int):
            return size
        raise Irreplaceable

    def _call(self, target: Any, *args: Any, result: Any = None) -> torch.fx.Node:
        made = self._graph.call_function(target, args)
        inherit(self._writer, made)
        made.meta["val"] = self._tensor if result is None else result
        return made


def _is_selection(node: torch.fx.Node) -> bool:
    return not isinstance(node.target, OpOverload)


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int) and value == number


def _is_at_least(end: Any, size: Any) -> bool:
    """Whether a slice up to `end` reaches the end of a dim."""
    return isinstance(end, int) and (end == torch.iinfo(torch.int64).max or (isinstance(size, int) and end >= size))
