"""The graphs of a program, its own and those of its control flow operators, and their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxplain.source import locations
from onnxplain.torch_internals.operators import OpOverload, schema

_KEPT_META = ("stack_trace", "nn_module_stack", "torch_fn", "from_node", "custom")


def graph_modules(root: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """`root` and the graphs of its control flow operators, at any depth."""
    return (module for module in root.modules() if isinstance(module, torch.fx.GraphModule))


def all_nodes(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    """The nodes of all graphs of a program."""
    return [node for module in graph_modules(program.graph_module) for node in module.graph.nodes]


def arguments(node: torch.fx.Node) -> dict[str, Any]:
    """The arguments of a node that calls an operator by the names in its schema, with the defaults of those that are not given."""
    assert isinstance(node.target, OpOverload)
    expected = schema(node.target).arguments
    defaults = {argument.name: argument.default_value for argument in expected if argument.has_default_value()}
    return defaults | dict(zip((argument.name for argument in expected), node.args, strict=False)) | dict(node.kwargs)


def inherit(node: torch.fx.Node, made: torch.fx.Node) -> None:
    """Gives `made`, a part of `node`, the line and the module of `node`, and the operator that the user called."""
    made.meta.update({key: node.meta[key] for key in _KEPT_META if key in node.meta})
    made.meta[locations.CAPTURED_AS] = node.meta.get(locations.CAPTURED_AS, node.name)
    made.meta["original_aten"] = node.meta.get("original_aten", node.target)


def mutates(node: torch.fx.Node) -> bool:
    """Whether the node's operator writes to one of its arguments."""
    return isinstance(node.target, OpOverload) and schema(node.target).is_mutable
