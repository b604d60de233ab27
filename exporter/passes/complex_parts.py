"""Operators that move or add elements, on complex tensors: on the real and on the imaginary parts."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import map_aggregate

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry, complex_dtype, qualified_name
from onnxplain.torch_internals.operators import OpOverload, schema

aten = torch.ops.aten

_BY_PARTS = frozenset(
    {
        *("aten::as_strided", "aten::as_strided_copy", "aten::as_strided_scatter", "aten::diagonal", "aten::diagonal_scatter"),
        *("aten::index_add", "aten::index_copy", "aten::index_fill", "aten::index_put", "aten::_unsafe_index_put"),
        *("aten::masked_select", "aten::masked_scatter", "aten::put", "aten::take", "aten::scatter", "aten::scatter_add"),
        *("aten::select_scatter", "aten::slice_scatter", "aten::unfold", "aten::copy", "aten::resize", "aten::resize_as"),
        *("aten::tril", "aten::triu", "aten::cumsum", "aten::trace", "aten::repeat_interleave"),
        *("aten::normal_functional", "aten::randn", "aten::randn_like", "aten::rand_like", "aten::uniform"),
        *("aten::empty_permuted", "aten::empty_strided"),
        *("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"),
        *("aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"),
        *("aten::nan_to_num", "aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::channel_shuffle"),
    }
)
"""Their result is linear in the elements of all complex arguments together, or draws the parts independently."""
_NUMBERS = frozenset({"value", "fill_value"})
"""The names of arguments that are numbers with parts."""
_ELEMENTS = frozenset({"self", "src", "source", "value", "values"})
"""The names of arguments whose elements the result has. Other tensors are positions, masks and templates."""
_NORMAL = frozenset({"aten::normal_functional", "aten::randn", "aten::randn_like"})
"""Operators that draw from a normal distribution."""


def split_into_parts(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Applies operators to both parts of complex tensors, where they have no translation for complex tensors."""
    del context
    for node in list(module.graph.nodes):
        target = node.target
        if not isinstance(target, OpOverload) or schema(target).name not in _BY_PARTS or complex_dtype(node) is None:
            continue
        result = node.meta.get("val")
        translation = registry.translation(qualified_name(target), is_complex=True)
        if translation is None and isinstance(result, torch.Tensor) and result.is_complex():
            _rewrite(module.graph, node, result)


def _rewrite(graph: torch.fx.Graph, node: torch.fx.Node, result: torch.Tensor) -> None:
    parts = [_part(graph, node, result, is_real=is_real) for is_real in (True, False)]
    with graph.inserting_before(node):
        made = _made(graph, node, aten.complex.default, tuple(parts), {}, result)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _part(graph: torch.fx.Graph, node: torch.fx.Node, result: torch.Tensor, *, is_real: bool) -> torch.fx.Node:
    assert isinstance(node.target, OpOverload)
    select = aten.real.default if is_real else aten.imag.default
    names = [each.name for each in schema(node.target).arguments]
    draws = torch.Tag.nondeterministic_seeded in node.target.tags

    def tensors(argument: Any) -> Any:
        value = _tensor(argument)
        if value is not None and value.is_complex():
            return _made(graph, node, select, (argument,), {}, torch.empty_like(value, dtype=value.dtype.to_real()))
        return argument.to_real() if isinstance(argument, torch.dtype) and argument.is_complex else argument

    def converted(name: str, argument: Any) -> Any:
        if name in _NUMBERS and isinstance(argument, int | float | complex):
            return argument.real if is_real else argument.imag
        if name == "mean":
            # NOTE: what the drawn part is divided by below.
            return argument * math.sqrt(2)
        value = _tensor(argument)
        if not is_real and not draws and name in _ELEMENTS and value is not None and not value.is_complex():
            return _made(graph, node, aten.zeros_like.default, (argument,), {}, value)
        return map_aggregate(argument, tensors)

    value = torch.empty_like(result, dtype=result.dtype.to_real())
    with graph.inserting_before(node):
        args = tuple(converted(name, argument) for name, argument in zip(names, node.args, strict=False))
        kwargs = {name: converted(name, argument) for name, argument in node.kwargs.items()}
        made = _made(graph, node, node.target, args, kwargs, value)
        # NOTE: the variance of a complex number is the sum of those of its parts; each part has the mean (seen in torch 2.13).
        return _made(graph, node, aten.mul.Tensor, (made, math.sqrt(0.5)), {}, value) if schema(node.target).name in _NORMAL else made


def _tensor(argument: Any) -> torch.Tensor | None:
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _made(
    graph: torch.fx.Graph, node: torch.fx.Node, target: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], value: torch.Tensor
) -> torch.fx.Node:
    made = graph.call_function(target, args, kwargs)
    made.meta.update({key: entry for key, entry in node.meta.items() if key not in ("val", "tensor_meta")})
    made.meta["val"] = value
    return made
