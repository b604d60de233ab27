"""Decomposes the operators that have no translation: each alone, on its own fake values, and only those."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.rules import DecompositionFailed

from .. import where
from ..registry import OnnxRegistry, qualified_name
from .inline import inline

Decompositions = Mapping[torch._ops.OpOverload, Callable[..., Any]]

_KEPT_META = ("stack_trace", "nn_module_stack", "torch_fn", "from_node", "custom")


def decompose(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Replaces each operator without a translation by the operators that it is made of, where torch knows them."""
    needing = [node for node in module.graph.nodes if _needs_decomposition(node, registry)]
    if not needing:
        return
    table = _decompositions(registry)
    for node in needing:
        made = _trace(context, node, table)
        if made is not None:
            inline(module, node, made, node.all_input_nodes, functools.partial(_inherit, node))
            context.event(f"{qualified_name(node.target)} ({node.name}) was decomposed.", logging.DEBUG)


def _needs_decomposition(node: torch.fx.Node, registry: OnnxRegistry) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and not registry.has(qualified_name(node.target))


def _decompositions(registry: OnnxRegistry) -> Decompositions:
    """What torch knows for operators without a translation. NOTE: core ATen's table lacks what eager never decomposes but ONNX does not
    have, and users register decompositions of their own at any time."""
    # Read in torch 2.13: private, but the only place with all of them; `default_decompositions` is its public part.
    everything = getattr(getattr(torch, "_decomp", None), "decomposition_table", {})
    table = {**everything, **torch.export.default_decompositions()}
    return {
        target: function
        for target, function in table.items()
        if isinstance(target, torch._ops.OpOverload) and not registry.has(qualified_name(target))
    }


def _trace(context: DiagnosticContext, node: torch.fx.Node, table: Decompositions) -> torch.fx.GraphModule | None:
    """The graph that the node's operator is made of, with one placeholder for each FX node among its arguments; None if unknown."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    function = table.get(target) or (target.decompose if target._can_decompose() else None)
    if function is None:
        return None
    values = [each.meta["val"] for each in node.all_input_nodes]

    def call(*inputs: Any) -> Any:
        given = dict(zip(node.all_input_nodes, inputs, strict=True))
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda each: given[each])
        return function(*args, **kwargs)

    try:
        with _fake_mode(node):
            # NOTE: some decompositions write to what they have made themselves.
            return make_fx(torch.func.functionalize(call), decomposition_table=dict(table))(*values)
    except Exception as error:
        context.report(
            DecompositionFailed(operator=qualified_name(target), error=f"{type(error).__name__}: {error}"),
            at=where.at_node(node),
            cause=error,
            blocking=True,
        )
        raise context.stop(error) from error


def _fake_mode(node: torch.fx.Node) -> Any:
    """The fake mode that the program was captured in, so that its symbolic sizes keep their meaning."""
    for each in (node, *node.all_input_nodes):
        values = each.meta.get("val")
        for value in values if isinstance(values, list | tuple) else (values,):
            if hasattr(value, "fake_mode"):
                return value.fake_mode
    raise ValueError(f"{node.name} has no fake value to decompose it on")


def _inherit(node: torch.fx.Node, made: torch.fx.Node) -> None:
    """What `node` is made of stands at its line and in its module, and remembers which operator the user called."""
    made.meta.update({key: node.meta[key] for key in _KEPT_META if key in node.meta})
    made.meta["original_aten"] = node.meta.get("original_aten", node.target)
