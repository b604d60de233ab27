"""Replaces in-place operators by operators without side effects: one by one where that is safe, otherwise by tracing the program again."""

from __future__ import annotations

import copy
import logging

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import qualified_name
from onnxplain.rules import MutationDropped, MutationNotRemoved
from onnxplain.source import locations
from onnxplain.torch_internals import functorch
from onnxplain.torch_internals.operators import OpOverload, schema

from . import aliases
from .graphs import all_nodes, graph_modules

_DROPOUT = frozenset({"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"})

_MUTATED_KINDS = {
    torch.export.graph_signature.OutputKind.BUFFER_MUTATION: "buffer",
    torch.export.graph_signature.OutputKind.USER_INPUT_MUTATION: "input",
}


def functionalize(
    context: DiagnosticContext, program: torch.export.ExportedProgram
) -> tuple[torch.export.ExportedProgram, torch.fx.GraphModule]:
    """The program and a copy of its graph, which has no in-place operators. The program is a new one if it was traced again."""
    graph_module = _without_idle_dropout(program)
    obstacle = _resolved_by_tracing(program) or _rewrite(graph_module)
    if obstacle is None:
        return program, graph_module
    # NOTE: this costs as much as the capture, so it happens only if it must.
    context.event(f"The whole program is functionalized, because of {qualified_name(obstacle.target)} ({obstacle.name}).", logging.DEBUG)
    functional = _retraced(context, _with_graph(program, _without_idle_dropout(program)))
    for spec in functional.graph_signature.output_specs:
        if spec.kind in _MUTATED_KINDS and spec.target is not None:
            writer = next((node for node in functional.graph.nodes if node.name == spec.arg.name and node.op == "call_function"), None)
            context.report(
                MutationDropped(kind=_MUTATED_KINDS[spec.kind], name=spec.target), at=None if writer is None else locations.at_node(writer)
            )
    return functional, copy.deepcopy(functional.graph_module)


def mutates(node: torch.fx.Node) -> bool:
    """Whether the node's operator writes to one of its arguments."""
    return isinstance(node.target, OpOverload) and schema(node.target).is_mutable


def _without_idle_dropout(program: torch.export.ExportedProgram) -> torch.fx.GraphModule:
    """A copy of the graph without dropout in evaluation, which returns its argument.

    NOTE: its schema does not say so, and torch loses writes to its result when it traces again (seen in 2.13).
    """
    copied: torch.fx.GraphModule = copy.deepcopy(program.graph_module)
    # NOTE: the copy renames a node `input` to `input_1`, since `input` is a Python function. The signature has the original name.
    for node, original in zip(copied.graph.nodes, program.graph.nodes, strict=True):
        node.name = original.name
    for module in graph_modules(copied):
        for node in list(module.graph.nodes):
            if qualified_name(node.target) in _DROPOUT and not node.args[2]:
                node.replace_all_uses_with(node.args[0])
                module.graph.erase_node(node)
    return copied


def _with_graph(program: torch.export.ExportedProgram, graph_module: torch.fx.GraphModule) -> torch.export.ExportedProgram:
    graph_module.recompile()
    signature = copy.deepcopy(program.graph_signature)
    # NOTE: an output in the signature may have been the result of a dropout.
    (results,) = graph_module.graph.output_node().args
    assert isinstance(results, list | tuple)
    for spec, result in zip(signature.output_specs, results, strict=True):
        if isinstance(result, torch.fx.Node) and hasattr(spec.arg, "name"):
            spec.arg.name = result.name
    return torch.export.ExportedProgram(
        root=graph_module,
        graph=graph_module.graph,
        graph_signature=signature,
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=program.verifiers,
    )


def _rewrite(root: torch.fx.GraphModule) -> torch.fx.Node | None:
    """Rewrites all in-place operators; returns the first for which that is not safe, and leaves the graph half rewritten then."""
    for module in graph_modules(root):
        if not any(map(mutates, module.graph.nodes)):
            continue
        nodes: list[torch.fx.Node] = list(module.graph.nodes)
        known = aliases.Aliases(nodes)
        for node in nodes:
            if not mutates(node):
                continue
            target, functional = node.args[0] if node.args else None, _functional(node)
            if functional is None or not isinstance(target, torch.fx.Node) or known.seen_later(target, node):
                return node
            node.target = functional
            for user in [user for user in target.users if known.is_later(user, node)]:
                user.replace_input_with(target, node)
            known.renew(node)
    return None


def _functional(node: torch.fx.Node) -> OpOverload | None:
    """The operator without side effects, such as `aten::relu` for `aten::relu_`; None if none exists or another argument is written."""
    target = node.target
    assert isinstance(target, OpOverload)
    written = [
        position for position, each in enumerate(schema(target).arguments) if each.alias_info is not None and each.alias_info.is_write
    ]
    name = schema(target).name.partition("::")[2]
    plain = name.removesuffix("_") if not name.startswith("__i") else f"__{name[3:]}"
    packet = getattr(getattr(torch.ops, target.namespace), plain, None)
    found = getattr(packet, schema(target).overload_name or "default", None) if plain != name else None
    if written != [0] or not isinstance(found, OpOverload) or schema(found).is_mutable:
        return None
    same = [str(each.type) for each in schema(found).arguments] == [str(each.type) for each in schema(target).arguments]
    return found if same else None


def _retraced(context: DiagnosticContext, program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    mutations = [node for node in all_nodes(program) if mutates(node)]
    try:
        functional: torch.export.ExportedProgram = program.run_decompositions({})
    except Exception as error:
        # NOTE: torch raises exceptions of many types about mutations that it cannot remove.
        if not mutations:
            raise
        raise context.fail(
            MutationNotRemoved(operator=qualified_name(mutations[0].target)), at=locations.at_node(mutations[0]), cause=error
        ) from error
    left: dict[torch.fx.Node, object] = {node: node.target for node in all_nodes(functional) if mutates(node)}
    # NOTE: torch wraps a custom operator that mutates its arguments in one of these. The user wrote the operator inside.
    left |= {node: node.args[0] for node in all_nodes(functional) if "::auto_functionalized" in qualified_name(node.target)}
    for node, operator in left.items():
        context.report(MutationNotRemoved(operator=qualified_name(operator)), at=locations.at_node(node), blocking=True)
    if left:
        raise context.stop()
    _restore_origins(program, functional)
    return functional


def _restore_origins(before: torch.export.ExportedProgram, after: torch.export.ExportedProgram) -> None:
    """Gives nodes inside control flow and autocast regions back the line and the module that they lost when they were traced again."""
    origins = {node.name: node for node in all_nodes(before) if _has_place(node)}
    for module in graph_modules(after.graph_module):
        # NOTE: backwards, so that a cast that autocast inserted takes them from the operator that it is for.
        for node in reversed(module.graph.nodes):
            if node.op != "call_function" or _has_place(node):
                continue
            origin = origins.get(node.name) or next(filter(_has_place, node.users), None)
            if origin is not None:
                node.meta.update({key: origin.meta[key] for key in ("stack_trace", "nn_module_stack") if key in origin.meta})


def _has_place(node: torch.fx.Node) -> bool:
    return locations.at_node(node).location is not None


def _resolved_by_tracing(program: torch.export.ExportedProgram) -> torch.fx.Node | None:
    """The first node that torch resolves only when it traces again.

    Until then, operators inside an autocast region have their old dtypes, and those inside a torch.vmap their old shapes (read in torch
    2.11, 2.13 and 2.15).
    """
    for node in all_nodes(program):
        name = qualified_name(node.target)
        if name == "higher_order::wrap_with_autocast" or name.startswith(functorch.PREDISPATCH):
            return node
    return None
