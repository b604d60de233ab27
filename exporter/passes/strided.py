"""Views by strides: they address a tensor's memory, which ONNX does not have. In order, the elements of a whole tensor are its memory."""

from __future__ import annotations

from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry, qualified_name
from onnxplain.rules import UnsupportedOverload
from onnxplain.source import locations

from . import aliases
from .graphs import arguments

_VIEWS = frozenset({"aten::as_strided", "aten::as_strided_copy"})
_SCATTER = "aten::as_strided_scatter"


def address_whole_tensors(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Lets each view by strides address the tensor whose memory its argument shows, and refuses views of memory that is not in order."""
    del registry
    for node in module.graph.nodes:
        name = qualified_name(node.target)
        if name not in _VIEWS and name != _SCATTER:
            continue
        given = arguments(node)
        shown, whole = given["self"], _whole(given["self"])
        offset = given.get("storage_offset")
        offset = shown.meta["val"].storage_offset() if offset is None else offset
        if whole is None or isinstance(offset, torch.SymInt) or (name == _SCATTER and not _same_memory(shown, whole)):
            problem = "a tensor whose elements are not in order in memory"
            rule = UnsupportedOverload(operator=name, problem=problem, supported=("a contiguous tensor",))
            context.report(rule, at=locations.at_node(node))
        elif name in _VIEWS:
            node.args, node.kwargs = (whole, given["size"], given["stride"], offset), {}


def _whole(shown: torch.fx.Node) -> torch.fx.Node | None:
    """The tensor whose memory `shown` shows, if its elements are in order in memory; None otherwise."""
    node = whole = shown
    try:
        while (base := aliases.shares_memory_with(node)) is not None:
            # NOTE: of several results, such as those of a sort, each has its own memory.
            node, whole = base, base if isinstance(base.meta["val"], torch.Tensor) else whole
    except aliases.UnknownMemory:
        return None
    value = whole.meta["val"]
    return whole if _is_in_order(value) and value.dtype is shown.meta["val"].dtype else None


def _same_memory(one: torch.fx.Node, other: torch.fx.Node) -> bool:
    """Whether two tensors in order have the same elements."""
    values = one.meta["val"], other.meta["val"]
    return all(map(_is_in_order, values)) and len({str(value.numel()) for value in values}) == 1


def _is_in_order(value: torch.Tensor) -> bool:
    # NOTE: not `is_contiguous`, which would decide about dynamic sizes.
    expected: Any = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        if str(size) != "1" and str(stride) != str(expected):
            return False
        expected = expected * size
    return value.storage_offset() == 0
