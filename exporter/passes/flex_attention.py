"""Replaces `flex_attention` by the operators of its definition: scores, the functions that change and mask them, a softmax, a product."""

from __future__ import annotations

import functools
from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext, described_error
from onnxplain.registry import OnnxRegistry, qualified_name
from onnxplain.torch_internals.decompositions import traced
from onnxplain.torch_internals.fake_tensors import mode_of
from onnxplain.torch_internals.flex_attention import can_be_traced, definition

from .graphs import inherit
from .inline import inline

_NAME = "higher_order::flex_attention"


def replace_flex_attention(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Replaces each call. Its two functions are graphs in attributes of `module`."""
    del registry
    for node in [each for each in module.graph.nodes if qualified_name(each.target) == _NAME and can_be_traced()]:
        graphs = {each: graph for each in node.all_input_nodes if (graph := _graph(module, each)) is not None}
        operands = [each for each in node.all_input_nodes if each not in graphs]
        try:
            made = _traced(node, operands, graphs)
        except Exception as error:  # noqa: BLE001  the functions are the user's code, and may do what torch.vmap cannot
            # NOTE: dispatch reports the operator as unsupported.
            context.event(f"flex_attention ({node.name}) cannot be traced: {described_error(error)}")
            continue
        inline(module, node, made, operands, functools.partial(inherit, node))
        for each in graphs:
            if not each.users:
                module.graph.erase_node(each)
                delattr(module, str(each.target))


def _graph(module: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.GraphModule | None:
    value = getattr(module, str(node.target), None) if node.op == "get_attr" else None
    return value if isinstance(value, torch.fx.GraphModule) else None


def _traced(node: torch.fx.Node, operands: list[torch.fx.Node], graphs: dict[torch.fx.Node, torch.fx.GraphModule]) -> torch.fx.GraphModule:
    def call(*inputs: Any) -> Any:
        given: dict[torch.fx.Node, Any] = {**graphs, **dict(zip(operands, inputs, strict=True))}
        args: Any = torch.fx.map_arg(node.args, given.__getitem__)
        return definition(*args)

    values = tuple(each.meta["val"] for each in operands)
    with mode_of(next(value for value in values if isinstance(value, torch.Tensor))):
        return traced(call, values, writes=False)
