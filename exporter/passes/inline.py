"""Puts one graph into another; inlines regions that only switch gradients, which an exported model does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from onnxplain.registry import qualified_name


def inline_grad_mode(module: torch.fx.GraphModule) -> None:
    """Replaces each `wrap_with_set_grad_enabled` in the module's graph by the nodes inside it."""
    for node in list(module.graph.nodes):
        if qualified_name(node.target) == "higher_order::wrap_with_set_grad_enabled":
            _, body, *args = node.args
            inner = getattr(module, body.target)
            # NOTE: regions nest, and nobody sees the inner graph after it is inlined.
            inline_grad_mode(inner)
            inline(module, node, inner, args)
            if not body.users:
                module.graph.erase_node(body)
                delattr(module, body.target)


def inline(
    module: torch.fx.GraphModule,
    node: torch.fx.Node,
    inner: torch.fx.GraphModule,
    args: Sequence[torch.fx.node.Argument],
    annotate: Callable[[torch.fx.Node], None] | None = None,
) -> None:
    """Replaces a node by the nodes of another graph.

    Args:
        module: The module of the graph that has the node.
        node: The node.
        inner: The module of the other graph.
        args: The values for the placeholders of `inner`.
        annotate: Called with each copied node.
    """
    placeholders = [each for each in inner.graph.nodes if each.op == "placeholder"]
    values: dict[torch.fx.Node, torch.fx.node.Argument] = dict(zip(placeholders, args, strict=True))
    outputs: torch.fx.node.Argument = None
    with module.graph.inserting_before(node):
        for each in inner.graph.nodes:
            if each.op == "get_attr":
                name = f"_{node.name}_{each.target}"
                setattr(module, name, getattr(inner, each.target))
                values[each] = constant = module.graph.get_attr(name)
                constant.meta["val"] = getattr(inner, each.target)
            elif each.op == "call_function":
                values[each] = copied = module.graph.node_copy(each, lambda old: values[old])
                if annotate is not None:
                    annotate(copied)
            elif each.op == "output":
                outputs = torch.fx.map_arg(each.args[0], lambda old: values[old])
    _replace(module.graph, node, outputs)


def _replace(graph: torch.fx.Graph, node: torch.fx.Node, outputs: torch.fx.node.Argument) -> None:
    if isinstance(outputs, list | tuple):
        for user in list(node.users):
            if qualified_name(user.target) == "_operator::getitem":
                user.replace_all_uses_with(outputs[user.args[1]])  # type: ignore[index, arg-type]  # an integer
                graph.erase_node(user)
    if node.users:
        node.replace_all_uses_with(outputs)  # type: ignore[arg-type]  # a node, as it is not a list
    graph.erase_node(node)
