"""Graphs as text, one line for each node. The steps of a finding point to these lines."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import onnx_ir as ir
import torch

from onnxplain.diagnostics import GraphText
from onnxplain.request import DimNames
from onnxplain.source import locations

from .labels import label_of, value_of

_WIDTH = 300
"""The longest line, in characters: an argument may be a list of thousands of numbers."""


def of_fx(name: str, module: torch.fx.GraphModule, dim_names: DimNames) -> GraphText:
    """The graph of `module`, followed by those of its control flow operators."""
    lines: list[str] = []
    nodes: dict[str, tuple[int, str]] = {}
    for path, graph_module in module.named_modules():
        if not isinstance(graph_module, torch.fx.GraphModule):
            continue
        lines.append(f"# The graph {path}, which a control flow operator runs." if path else f"# The {name} graph.")
        for node in graph_module.graph.nodes:
            lines.append(_fx_line(node, dim_names))
            nodes.setdefault(node.name, (len(lines), ""))
    return _text(name, lines, nodes)


def of_onnx(name: str, model: ir.Model) -> GraphText:
    """The graph of `model` with its subgraphs. Lines are found by the names of the FX nodes that the ONNX nodes were made from."""
    lines = ["# The ONNX graph."]
    first: dict[str, int] = {}
    made: dict[str, list[str]] = {}
    for node in model.graph.all_nodes():
        outputs = ", ".join(f"{value.name}: {value.type or '?'}{value.shape or ''}" for value in node.outputs)
        inputs = ", ".join("" if value is None else str(value.name) for value in node.inputs)
        lines.append(f"{outputs} = {node.domain and node.domain + '::'}{node.op_type}({inputs})  # {node.name}")
        origin = node.meta.get(locations.FX_NODE)
        if origin is not None:
            first.setdefault(origin.name, len(lines))
            made.setdefault(origin.name, []).append(node.op_type)
    nodes = {origin: (line, f"translated to {', '.join(dict.fromkeys(made[origin]))} (ONNX)") for origin, line in first.items()}
    return _text(name, lines, nodes)


def _fx_line(node: torch.fx.Node, dim_names: DimNames) -> str:
    if node.op == "output":
        return f"return {node.args[0]}"
    value = value_of(node.meta.get("val"), dim_names)
    target = label_of(node) if node.op == "call_function" else f"{label_of(node)} {node.target}"
    arguments = ", ".join([*map(str, node.args), *(f"{key}={value}" for key, value in node.kwargs.items())])
    source = next(_sources(node), "")
    return f"{node.name}{value and ': '}{value} = {target}" + (f"({arguments})" if node.op == "call_function" else "") + source


def _sources(node: torch.fx.Node) -> Iterator[str]:
    for frame in reversed(locations.stack_of(node)):
        if locations.is_users(frame.file):
            yield f"  # {pathlib.PurePath(frame.file).name}:{frame.line}"


def _text(name: str, lines: list[str], nodes: dict[str, tuple[int, str]]) -> GraphText:
    # NOTE: names and arguments come from the model. None of them may begin a new line.
    plain = (re.sub(r"\s+", " ", line).strip() for line in lines)
    return GraphText(name, "".join(f"{line if len(line) <= _WIDTH else line[: _WIDTH - 3] + '...'}\n" for line in plain), nodes)
