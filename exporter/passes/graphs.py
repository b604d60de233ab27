"""The graphs of a program, its own and those of its control flow operators, and their nodes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from onnxplain.source import locations
from onnxplain.torch_internals import generated_code, graph_names
from onnxplain.torch_internals.operators import OpOverload, schema

_KEPT_META = ("stack_trace", "nn_module_stack", "torch_fn", "from_node", "custom")


def graph_modules(root: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """`root` and the graphs of its control flow operators, at any depth."""
    return (module for module in root.modules() if isinstance(module, torch.fx.GraphModule))


def all_nodes(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    """The nodes of all graphs of a program."""
    return [node for module in graph_modules(program.graph_module) for node in module.graph.nodes]


def copy_of(module: torch.fx.GraphModule, left_out: Mapping[torch.fx.Node, torch.fx.Node]) -> torch.fx.GraphModule:
    """A copy of a graph and of its graphs of control flow, with the names of its nodes.

    Args:
        module: The module with the graph.
        left_out: Nodes of it that the copy lacks. Each is read as if it were another node, which comes before it.
    """
    # NOTE: the copy gets its own code, so its lines need no copy. There are as many as the graph has nodes.
    lines = generated_code.lines_of(module)
    known = {id(lines): lines}
    if left_out:
        # NOTE: a copy that is known already takes the place of the graph.
        known[id(module.graph)] = _part(module.graph, left_out)
    copied: torch.fx.GraphModule = copy.deepcopy(module, known)
    originals = (node for node in module.graph.nodes if node not in left_out)
    # NOTE: the copy renames a node `input` to `input_1`, since `input` is a Python function. The signature has the original name.
    for node, original in zip(copied.graph.nodes, originals, strict=True):
        if node.name != original.name:
            node.name = original.name
    return copied


def _part(graph: torch.fx.Graph, left_out: Mapping[torch.fx.Node, torch.fx.Node]) -> torch.fx.Graph:
    part = torch.fx.Graph()
    # NOTE: a pass gives a node the name that it would have in the whole graph.
    graph_names.reserve(part, [node.name for node in left_out])
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        if node not in left_out:
            copies[node] = part.node_copy(node, lambda read: copies[left_out.get(read, read)])
    return part


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
