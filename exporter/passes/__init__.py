"""FX passes: from the captured program to a graph without side effects and, as far as torch can, with translatable operators only."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

import torch

from onnxplain import graph_views
from onnxplain.diagnostics import PREPARED_GRAPH, DiagnosticContext
from onnxplain.process import without_autocast
from onnxplain.registry import OnnxRegistry
from onnxplain.request import DimNames
from onnxplain.torch_internals import config, generated_code, size_arguments, size_numbers

from . import complex_parts, decompose, empty_results, flex_attention, functionalize, promote, prune, scalars, squeezes, strided
from .graphs import arguments, graph_modules
from .steps import Steps

__all__ = ["Prepared", "arguments", "graph_modules", "run", "run_without"]


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A program for which dispatch can plan translations.

    Attributes:
        program: The program that the graph belongs to, with its signature, weights and constants.
        graph_module: The graph, a copy that may be changed. The graphs of control flow operators are submodules.
        readers: For inputs of the graph that only nodes read which the graph lacks, one of these.
    """

    program: torch.export.ExportedProgram
    graph_module: torch.fx.GraphModule
    readers: Mapping[torch.fx.Node, torch.fx.Node] = dataclasses.field(default_factory=dict)

    def reader(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """The first operator that reads an input of the graph; None if none does."""
        return next(iter(node.users), None) or self.readers.get(node)


Pass = Callable[[DiagnosticContext, torch.fx.GraphModule, OnnxRegistry], None]

_PASSES: tuple[Pass, ...] = (
    prune.remove_unused,  # first: ONNX has no operator that stops a run, so no other pass need see a run-time check
    strided.address_whole_tensors,  # before decompose: views still tell whose memory they show
    squeezes.drop_computed_dims,  # before decompose: a squeeze has a translation, so it stays one
    flex_attention.replace_flex_attention,  # before decompose: its operators may need it
    empty_results.replace_empty_results,  # before decompose: what a constant replaces needs no translation
    complex_parts.split_into_parts,  # before decompose: the operators on the parts may need it
    decompose.decompose,  # before promote: operators that come from a decomposition are already promoted
    empty_results.replace_empty_results,  # both again: what a decomposition is made of
    complex_parts.split_into_parts,
    promote.promote_dtypes,
    scalars.scalars_to_vectors,  # after decompose: operators that come from a decomposition get scalars as well
    prune.remove_unused,  # last: the other passes leave unused nodes behind
)
"""In order, with the reason for the position. Functionalization comes before all of them, since it may make a new program."""


def run(context: DiagnosticContext, program: torch.export.ExportedProgram, registry: OnnxRegistry, dim_names: DimNames) -> Prepared:
    """Runs all passes on a copy of the program's graph."""
    return _run(context, program, registry, dim_names, {})


def run_without(
    context: DiagnosticContext,
    program: torch.export.ExportedProgram,
    registry: OnnxRegistry,
    dim_names: DimNames,
    left_out: Mapping[torch.fx.Node, torch.fx.Node],
) -> Prepared | None:
    """Runs all passes on a copy of a part of the program's graph. The nodes in it have the names that they have in the program.

    Args:
        context: The context.
        program: The program.
        registry: The translations.
        dim_names: The names of dims.
        left_out: Nodes that the copy lacks. Each is read as if it were another node, which comes before it.

    Returns:
        The part; None if the graph has to be seen as a whole.
    """
    try:
        prepared = _run(context, program, registry, dim_names, left_out)
    except functionalize.NeedsWhole:
        return None
    return dataclasses.replace(prepared, readers=_readers(prepared, left_out))


def _readers(prepared: Prepared, left_out: Mapping[torch.fx.Node, torch.fx.Node]) -> dict[torch.fx.Node, torch.fx.Node]:
    """For inputs of the graph that only nodes in `left_out` read, the first of these, if the node that it equals is still needed."""
    names = {node.name for node in prepared.graph_module.graph.nodes}
    readers = {}
    for node, original in zip(prepared.graph_module.graph.nodes, prepared.program.graph.nodes, strict=False):
        if node.op != "placeholder":
            break
        if not node.users:
            found = next((each for each in original.users if each in left_out and left_out[each].name in names), None)
            if found is not None:
                readers[node] = found
    return readers


def _run(
    context: DiagnosticContext,
    program: torch.export.ExportedProgram,
    registry: OnnxRegistry,
    dim_names: DimNames,
    left_out: Mapping[torch.fx.Node, torch.fx.Node],
) -> Prepared:
    captured = program.graph_module
    context.graph("captured", lambda: graph_views.of_fx("captured", captured, dim_names))
    # NOTE: passes compute shapes again. As in the capture, a size of 1 in the example must not fix a dynamic dim.
    with generated_code.deferred(), config.switched_on(config.SIZE_ONE), size_arguments.taken(), size_numbers.kept():
        steps = Steps(context, captured)
        program, graph_module = functionalize.functionalize(context, program, dim_names, left_out)
        steps.tell("functionalize", graph_module)
        context.graph("prepared", lambda: graph_views.of_fx("prepared", graph_module, dim_names))
        with without_autocast():
            for change in _PASSES:
                for module in graph_modules(graph_module):
                    change(context, module, registry)
                steps.tell(change.__name__, graph_module)
    context.attach(PREPARED_GRAPH, lambda: _readable(graph_module, dim_names))
    return Prepared(program, graph_module)


def _readable(graph_module: torch.fx.GraphModule, dim_names: DimNames) -> str:
    """The graph as Python code, with the user's names for sizes in its annotations."""
    text = str(graph_module.print_readable(print_output=False))
    return re.sub(r': "[^"]*"', lambda annotation: dim_names.put_into(annotation[0]), text)
