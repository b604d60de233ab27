"""Replaces in-place operators by ones without side effects, for the whole program, if it has any."""

from __future__ import annotations

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.rules import MutationDropped, MutationNotRemoved

from .. import where
from ..registry import qualified_name

_MUTATED_KINDS = {
    torch.export.graph_signature.OutputKind.BUFFER_MUTATION: "buffer",
    torch.export.graph_signature.OutputKind.USER_INPUT_MUTATION: "input",
}


def functionalize(context: DiagnosticContext, program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program without in-place operators; the same one if it has none.

    NOTE: torch re-traces the whole program for this, which costs as much as capturing it did, so it happens only when needed.
    """
    mutations = [node for node in _nodes(program) if mutates(node)]
    if mutations or _has_autocast(program):
        names = sorted({qualified_name(node.target) for node in mutations})
        context.event(f"The program is functionalized because of {', '.join(names) or 'autocast'}.")
        functional = _functionalized(context, program, mutations)
    else:
        functional = program
    for spec in functional.graph_signature.output_specs:
        if spec.kind in _MUTATED_KINDS and spec.target is not None:
            writer = next((node for node in functional.graph.nodes if node.name == spec.arg.name and node.op == "call_function"), None)
            context.report(
                MutationDropped(kind=_MUTATED_KINDS[spec.kind], name=spec.target), at=None if writer is None else where.at_node(writer)
            )
    return functional


def mutates(node: torch.fx.Node) -> bool:
    """True if the node's operator writes to one of its arguments."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _functionalized(
    context: DiagnosticContext, program: torch.export.ExportedProgram, mutations: list[torch.fx.Node]
) -> torch.export.ExportedProgram:
    try:
        functional: torch.export.ExportedProgram = program.run_decompositions({})
    except Exception as error:
        if not mutations:
            raise
        raise context.fail(
            MutationNotRemoved(operator=qualified_name(mutations[0].target)), at=where.at_node(mutations[0]), cause=error
        ) from error
    left: dict[torch.fx.Node, object] = {node: node.target for node in _nodes(functional) if mutates(node)}
    # NOTE: a custom operator that mutates its arguments stays inside one of these; it is what the user wrote.
    left |= {node: node.args[0] for node in _nodes(functional) if "::auto_functionalized" in qualified_name(node.target)}
    for node, operator in left.items():
        context.report(MutationNotRemoved(operator=qualified_name(operator)), at=where.at_node(node), blocking=True)
    if left:
        raise context.stop()
    _restore_origins(program, functional)
    return functional


def _restore_origins(before: torch.export.ExportedProgram, after: torch.export.ExportedProgram) -> None:
    """Gives nodes back the line and module that re-tracing lost: of nodes inside control flow and autocast regions."""
    origins = {node.name: node for node in _nodes(before) if _has_place(node)}
    for module in (module for module in after.graph_module.modules() if isinstance(module, torch.fx.GraphModule)):
        # NOTE: backwards, so that casts that autocast inserted get theirs from the operator that they are for.
        for node in reversed(module.graph.nodes):
            if node.op != "call_function" or _has_place(node):
                continue
            origin = origins.get(node.name) or next(filter(_has_place, node.users), None)
            if origin is not None:
                node.meta.update({key: origin.meta[key] for key in ("stack_trace", "nn_module_stack") if key in origin.meta})


def _has_place(node: torch.fx.Node) -> bool:
    return where.at_node(node).location is not None


def _nodes(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    modules = [module for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    return [node for module in modules for node in module.graph.nodes]


def _has_autocast(program: torch.export.ExportedProgram) -> bool:
    # NOTE: inside an autocast region the operators still have their old dtypes; torch inserts the casts when it re-traces.
    return any(qualified_name(node.target) == "higher_order::wrap_with_autocast" for node in _nodes(program))
