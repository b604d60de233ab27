"""FX passes: from the captured program to a graph without side effects in which every operator has a translation, if that can be had."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch

from onnxplain import graph_views
from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry
from onnxplain.request import DimNames

from . import decompose, functionalize, inline, promote, prune


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What dispatch plans.

    Attributes:
        program: The program that the graph belongs to: its signature, weights and constants.
        graph_module: The graph, ours to change; graphs of control flow operators hang on it as submodules.
    """

    program: torch.export.ExportedProgram
    graph_module: torch.fx.GraphModule


Pass = Callable[[DiagnosticContext, torch.fx.GraphModule, OnnxRegistry], None]

PASSES: tuple[Pass, ...] = (
    inline.inline_grad_mode,  # first: what stands inside must be seen by all others
    prune.remove_checks,  # before decomposing: a check needs no translation
    decompose.decompose,  # before promoting: what an operator is made of promotes dtypes by itself
    promote.promote_dtypes,
    prune.remove_unused,  # last: what the others left behind
)
"""In order, with the reason for the place. Functionalization comes before all: it may make a new program."""


def run(context: DiagnosticContext, program: torch.export.ExportedProgram, registry: OnnxRegistry, dim_names: DimNames) -> Prepared:
    """Runs all passes on a copy of the program's graph."""
    captured = program.graph_module
    context.graph("captured", lambda: graph_views.of_fx("captured", captured, dim_names))
    program, graph_module = functionalize.functionalize(context, program)
    context.graph("prepared", lambda: graph_views.of_fx("prepared", graph_module, dim_names))
    for change in PASSES:
        for module in graph_modules(graph_module):
            change(context, module, registry)
    context.attach("prepared-graph.txt", lambda: str(graph_module.print_readable(print_output=False)))
    return Prepared(program, graph_module)


def graph_modules(root: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """`root` and the graphs of its control flow operators, however deep."""
    return (module for module in root.modules() if isinstance(module, torch.fx.GraphModule))
