"""Operators whose result is a view although their schema does not say so, such as `meshgrid`, as the operators that compose them."""

from __future__ import annotations

import functools
import logging

import torch

from onnxplain.diagnostics import DiagnosticContext, described_error
from onnxplain.registry import qualified_name
from onnxplain.torch_internals.operators import OpOverload, schema

from . import aliases
from .decompose import traced_call
from .graphs import inherit, mutates
from .inline import inline

_TOLD = {torch.ops.aten.unsafe_chunk.default: torch.ops.aten.chunk.default}
"""Operators that are composed of one with the same flaw, with one that tells."""


def compose(context: DiagnosticContext, module: torch.fx.GraphModule) -> None:
    """Replaces these operators where a write may concern their results, which torch and our own analysis of views would lose."""
    nodes = list(module.graph.nodes)
    written = [node.args[0] for node in nodes if mutates(node) and node.args and isinstance(node.args[0], torch.fx.Node)]
    if not written:
        return
    concerned = aliases.groups(nodes, written)
    for node in nodes:
        if node not in concerned or not _may_hide_a_view(node):
            continue
        try:
            made = traced_call(node, _TOLD.get(node.target, node.target))
        except Exception as error:  # noqa: BLE001  a custom operator may raise anything
            context.event(f"{qualified_name(node.target)} ({node.name}) may return a view: {described_error(error)}", logging.DEBUG)
            continue
        inline(module, node, made, node.all_input_nodes, functools.partial(inherit, node))
        context.event(f"{qualified_name(node.target)} ({node.name}) returns a view, and was composed of others.", logging.DEBUG)


def _may_hide_a_view(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, OpOverload) or any(each.alias_info is not None for each in schema(node.target).returns):
        return False
    try:
        return aliases.shares_memory_with(node) is not None
    except aliases.UnknownMemory:
        return True
