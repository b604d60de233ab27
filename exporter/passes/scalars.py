"""Operators along a dim, on scalars: PyTorch treats a scalar as a vector of one element, ONNX does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry, complex_dtype, qualified_name
from onnxplain.torch_internals.operators import OpOverload, schema

aten = torch.ops.aten


def scalars_to_vectors(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Gives operators with an argument `dim` vectors in place of scalars, and turns the results into scalars again.

    Only those whose translation is torchlib's: ours and the user's take scalars as PyTorch does.
    """
    del context
    for node in list(module.graph.nodes):
        if not isinstance(node.target, OpOverload) or not _has_scalar_along_dim(node):
            continue
        translation = registry.translation(qualified_name(node.target), is_complex=complex_dtype(node) is not None)
        if translation is not None and translation.origin == "torchlib":
            _rewrite(module.graph, node)


def _has_scalar_along_dim(node: torch.fx.Node) -> bool:
    first = node.args[0] if node.args else None
    value = first.meta.get("val") if isinstance(first, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.ndim:
        return False
    assert isinstance(node.target, OpOverload)
    arguments = schema(node.target).arguments
    return any(each.name == "dim" and (position < len(node.args) or each.name in node.kwargs) for position, each in enumerate(arguments))


def _rewrite(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    assert isinstance(node.target, OpOverload)
    names = [each.name for each in schema(node.target).arguments]

    def vector(argument: Any) -> Any:
        value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or value.ndim:
            return argument
        with graph.inserting_before(node):
            return _made(graph, node, aten.unsqueeze.default, (argument, 0), value.unsqueeze(0))

    def dim(name: str, value: Any) -> Any:
        if name != "dim":
            return value
        # NOTE: no dims are all dims to some reductions and none to others. The only dim of a scalar gives the same result.
        return 0 if value == -1 else [0] if isinstance(value, Sequence) and not value else value

    node.args = tuple(dim(name, vector(argument)) for name, argument in zip(names, node.args, strict=False))
    node.kwargs = {name: dim(name, vector(argument)) for name, argument in node.kwargs.items()}
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    before, node.meta["val"] = node.meta["val"], node.target(*args, **kwargs)
    if isinstance(before, torch.Tensor):
        _to_scalar(graph, node, before)
        return
    for user in list(node.users):
        before, user.meta["val"] = user.meta["val"], node.meta["val"][user.args[1]]
        _to_scalar(graph, user, before)


def _to_scalar(graph: torch.fx.Graph, node: torch.fx.Node, value: torch.Tensor) -> None:
    """Turns the result of a node into a scalar, unless it is a reduction that has made one already."""
    if not node.meta["val"].ndim:
        return
    users = list(node.users)
    with graph.inserting_after(node):
        reshaped = _made(graph, node, aten.reshape.default, (node, []), value)
    for user in users:
        user.replace_input_with(node, reshaped)


def _made(graph: torch.fx.Graph, node: torch.fx.Node, target: OpOverload, args: tuple[Any, ...], value: torch.Tensor) -> torch.fx.Node:
    made = graph.call_function(target, args)
    made.meta.update({key: entry for key, entry in node.meta.items() if key not in ("val", "tensor_meta")})
    made.meta["val"] = value
    return made
