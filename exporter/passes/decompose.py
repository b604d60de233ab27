"""Decomposes the operators that have no translation: each alone, on its own fake values, and only those."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry, complex_dtype, qualified_name
from onnxplain.rules import CustomOperatorInlined, DecompositionFailed
from onnxplain.source import locations, stubs
from onnxplain.torch_internals.decompositions import Decompositions, decomposition_of, known_decompositions, make_fx
from onnxplain.torch_internals.fake_tensors import mode_of
from onnxplain.torch_internals.operators import OpOverload
from onnxplain.torch_internals.python_kernels import WithoutData, python_kernel

from .inline import inline

_KEPT_META = ("stack_trace", "nn_module_stack", "torch_fn", "from_node", "custom")

_WAY = "decomposed_from"
"""Key, in the `meta` of a node, of the operators that it was decomposed from: some are made of each other."""


def decompose(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Replaces each operator without a translation by the operators that it is made of, where torch knows them."""
    needing = [node for node in module.graph.nodes if _needs_decomposition(node, registry)]
    if not needing:
        return
    everything = known_decompositions()
    table = {
        target: function
        for target, function in everything.items()
        if registry.translation(qualified_name(target), is_complex=False) is None
    }
    tried: set[torch.fx.Node] = set()
    while needing:
        for node in needing:
            made = _decomposed(context, node, everything, table) or _implementation(context, node, table)
            if made is not None:
                inline(module, node, made, node.all_input_nodes, functools.partial(_inherit, node))
                context.event(f"{qualified_name(node.target)} ({node.name}) was decomposed.", logging.DEBUG)
        tried.update(needing)
        # NOTE: an implementation in Python may call another operator that has one.
        needing = [node for node in module.graph.nodes if node not in tried and _needs_decomposition(node, registry)]


def _needs_decomposition(node: torch.fx.Node, registry: OnnxRegistry) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload) or node.target in node.meta.get(_WAY, ()):
        return False
    # NOTE: what has a translation for real tensors only may be made of operators that have one for complex tensors, too.
    return registry.translation(qualified_name(node.target), is_complex=complex_dtype(node) is not None) is None


def _decomposed(
    context: DiagnosticContext, node: torch.fx.Node, everything: Decompositions, table: Decompositions
) -> torch.fx.GraphModule | None:
    """The graph that torch says the node's operator is made of; None if it does not say. `table` is for what stands in that graph."""
    target = node.target
    assert isinstance(target, OpOverload)
    function = everything.get(target) or decomposition_of(target)
    if function is None:
        return None
    try:
        made = _traced(node, function, table)
    except Exception as error:
        context.report(
            DecompositionFailed(operator=qualified_name(target), error=f"{type(error).__name__}: {error}"),
            at=locations.at_node(node),
            cause=error,
            blocking=True,
        )
        raise context.stop(error) from error
    return made


def _implementation(context: DiagnosticContext, node: torch.fx.Node, table: Decompositions) -> torch.fx.GraphModule | None:
    """The graph of what the operator's implementation in Python calls; None if there is none, or if it needs data."""
    target = node.target
    assert isinstance(target, OpOverload)
    kernel = python_kernel(target)
    if kernel is None:
        return None
    try:
        with WithoutData():
            made = _traced(node, kernel.function, table)
    except Exception as error:
        context.event(
            f"{qualified_name(target)} has an implementation in Python, which cannot be exported: {type(error).__name__}: {error}"
        )
        return None
    if any(each.target is target for each in made.graph.nodes):
        return None
    if not locations.is_internal(kernel.file) or target.namespace not in ("aten", "prims"):
        context.report(CustomOperatorInlined(operator=qualified_name(target)), at=locations.at_node(node), fixes=[stubs.skeleton(target)])
    return made


def _traced(node: torch.fx.Node, function: Callable[..., Any], table: Decompositions) -> torch.fx.GraphModule:
    """The graph of `function`, called as the node calls its operator, with one placeholder for each FX node among the arguments."""
    values = [each.meta["val"] for each in node.all_input_nodes]

    def call(*inputs: Any) -> Any:
        given = dict(zip(node.all_input_nodes, inputs, strict=True))
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda each: given[each])
        result = function(*args, **kwargs)
        # NOTE: results with names, such as aminmax's, would become a call that makes them.
        return tuple(result) if isinstance(result, tuple) else result

    with _fake_mode(node):
        # NOTE: some decompositions write to what they have made themselves.
        return make_fx(torch.func.functionalize(call), decomposition_table=dict(table))(*values)


def _fake_mode(node: torch.fx.Node) -> Any:
    """The fake mode that the program was captured in, so that its symbolic sizes keep their meaning."""
    for each in (node, *node.all_input_nodes):
        values = each.meta.get("val")
        for value in values if isinstance(values, list | tuple) else (values,):
            if (mode := mode_of(value)) is not None:
                return mode
    raise ValueError(f"{node.name} has no fake value to decompose it on")


def _inherit(node: torch.fx.Node, made: torch.fx.Node) -> None:
    """What `node` is made of stands at its line and in its module, and remembers which operator the user called."""
    made.meta.update({key: node.meta[key] for key in _KEPT_META if key in node.meta})
    made.meta[_WAY] = (*node.meta.get(_WAY, ()), node.target)
    made.meta[locations.CAPTURED_AS] = node.meta.get(locations.CAPTURED_AS, node.name)
    made.meta["original_aten"] = node.meta.get("original_aten", node.target)
