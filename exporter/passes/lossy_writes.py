"""Writes that torch replaces by others: to elements that an expansion repeats, and through windows that overlap or leave elements out."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import qualified_name
from onnxplain.rules import MutationNotRemoved
from onnxplain.source import locations
from onnxplain.torch_internals import shape_env
from onnxplain.torch_internals.symbolic_expressions import expression_of, number_at

from . import aliases
from .graphs import arguments, mutates

_FILLS = frozenset(
    {
        *("aten::zero_", "aten::fill_.Scalar", "aten::fill_.Tensor", "aten::fill_diagonal_", "aten::tril_", "aten::triu_"),
        *("aten::index_fill_.int_Scalar", "aten::index_fill_.int_Tensor", "aten::index_put_"),
        *("aten::masked_fill_.Scalar", "aten::masked_fill_.Tensor"),
    }
)
"""Operators that write to repeated elements in eager mode."""

_aten = torch.ops.aten
_SCATTERS = frozenset({_aten.diagonal_scatter.default, _aten.select_scatter.default, _aten.slice_scatter.default})
"""Operators that write to a copy of their first argument, which has its strides."""


def refuse(context: DiagnosticContext, nodes: Sequence[torch.fx.Node]) -> None:
    """Reports the writes after which torch's replacements give other values than eager mode (read in torch 2.13).

    Args:
        context: It gets the findings.
        nodes: The nodes of a program.
    """
    windows = {node for node in nodes if node.target is _aten.unfold.default and not _tiles(node)}
    for node in nodes:
        if mutates(node):
            is_lossy = _repeats(node) or (bool(windows) and _writes_through(node, windows))
        else:
            is_lossy = node.target in _SCATTERS and _overlaps(node)
        if is_lossy:
            context.report(MutationNotRemoved(operator=qualified_name(node.target)), at=locations.at_node(node), blocking=True)


def _first(node: torch.fx.Node) -> torch.Tensor | None:
    """The tensor that `node` writes, or writes a copy of."""
    written = node.args[0] if node.args else None
    value = written.meta.get("val") if isinstance(written, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) and value.layout is torch.strided else None


def _repeats(node: torch.fx.Node) -> bool:
    """Whether `node` writes to elements that an expansion repeats: torch adds what each repetition changes."""
    value = _first(node)
    if value is None:
        return False
    repeated = [size for size, stride in zip(value.shape, value.stride(), strict=True) if isinstance(stride, int) and stride == 0]
    # NOTE: other operators refuse repeated elements in eager mode, so that a dynamic size is 1 in every run.
    return any(size > 1 if isinstance(size, int) else qualified_name(node.target) in _FILLS for size in repeated)


def _tiles(node: torch.fx.Node) -> bool:
    """Whether the windows of `unfold` hold each element once. Torch sets the elements to 0 that no window holds."""
    given, value = arguments(node), _first(node)
    assert value is not None
    if not value.ndim:
        return True
    length, size, step = value.shape[given["dimension"]], given["size"], given["step"]
    return all(isinstance(each, int) for each in (length, size, step)) and step == size and length % size == 0


def _writes_through(node: torch.fx.Node, windows: set[torch.fx.Node]) -> bool:
    """Whether what `node` writes is one of `windows`, or a view of it."""
    found, seen = [each for each in node.args[:1] if isinstance(each, torch.fx.Node)], set[torch.fx.Node]()
    while found:
        each = found.pop()
        if each in windows:
            return True
        if each not in seen:
            seen.add(each)
            found += aliases.may_share_memory_with(each)
    return False


def _overlaps(node: torch.fx.Node) -> bool:
    """Whether the first argument holds an element at several places, so that eager mode writes to all of these."""
    value = _first(node)
    if value is None:
        return False
    sizes = [*value.shape, *value.stride()]
    symbolic = [each for each in sizes if isinstance(each, torch.SymInt)]
    known = shape_env.examples(shape_env.of(symbolic[0])) if symbolic else {}
    # NOTE: data decide the other sizes, of which any will do.
    example = {symbol: known.get(symbol, 4) for each in symbolic for symbol in expression_of(each).free_symbols}
    numbers = [number_at(each, example) for each in sizes]
    dims = sorted((stride, size) for size, stride in zip(numbers[: value.ndim], numbers[value.ndim :], strict=True) if size > 1)
    reach = 0
    for stride, size in dims:
        # NOTE: eager mode copies an expanded tensor as a whole.
        if stride == 0:
            return False
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False
