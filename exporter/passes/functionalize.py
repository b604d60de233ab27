"""Replaces in-place operators by operators without side effects: one by one where that is safe, otherwise by tracing the program again."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

import sympy
import torch

from onnxplain.diagnostics import Confidence, DiagnosticContext, Evidence, Fix
from onnxplain.process import autocast_devices
from onnxplain.registry import qualified_name
from onnxplain.request import DimNames
from onnxplain.rules import ConstraintViolated, MutationDropped, MutationNotRemoved, TrainingMode
from onnxplain.source import locations
from onnxplain.torch_internals import fake_kernels, functorch, input_free_values, python_frames, pytree, shape_env, torch_frames, tracing
from onnxplain.torch_internals.operators import OpOverload, failed, schema

from . import aliases, diagonal_writes, hidden_views, joined_memory, lossy_writes, observers, views
from .graphs import all_nodes, arguments, copy_of, graph_modules, mutates
from .inline import inline_grad_mode
from .views import View

_DROPOUT = frozenset({"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"})

_WITH_STATISTICS = {"aten::batch_norm": "training", "aten::instance_norm": "use_input_stats"}
"""Normalizations that keep running statistics, and the argument that makes them update these."""

_STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
"""Buffers that layers for normalization update in training mode only."""

_MUTATED_KINDS = {
    torch.export.graph_signature.OutputKind.BUFFER_MUTATION: "buffer",
    torch.export.graph_signature.OutputKind.USER_INPUT_MUTATION: "input",
}


class NeedsWhole(Exception):
    """A graph that lacks nodes would have to be traced again."""


def functionalize(
    context: DiagnosticContext,
    program: torch.export.ExportedProgram,
    dim_names: DimNames,
    left_out: Mapping[torch.fx.Node, torch.fx.Node],
) -> tuple[torch.export.ExportedProgram, torch.fx.GraphModule]:
    """The program and a copy of its graph, which has no in-place operators. The program is a new one if it was traced again.

    Args:
        context: The context.
        program: The program.
        dim_names: The names of dims.
        left_out: Nodes that the copy lacks. Each is read as if it were another node, which comes before it.

    Raises:
        NeedsWhole: The program would have to be traced again without the nodes in `left_out`.
    """
    lossy_writes.refuse(context, [node for node in all_nodes(program) if node not in left_out])
    graph_module = _copy(context, program, left_out)
    lasting = _lasting(program, graph_module.graph)
    returned, plain = _returned(graph_module.graph), _plain_inputs(program)
    writers: dict[torch.fx.Node, Evidence] = {}
    copies = joined_memory.Copies(program)
    obstacle = _resolved_by_tracing(graph_module) or _under_autocast(graph_module) or _rewrite(graph_module, lasting, writers, copies)
    if obstacle is None:
        for size, node in copies.assumed.items():
            rule = ConstraintViolated(dim=dim_names.text(size), constraint=f"{dim_names.text(size)} != 1")
            context.report(rule, at=locations.at_node(node))
        for node, (kind, name) in lasting.items():
            # NOTE: the caller of a model that returns its cache uses the result. A tensor that is an argument by itself may live on.
            if node in writers and (kind != "input" or node not in returned or node.name in plain):
                _report(context, kind, name, writers[node])
        return program, graph_module
    if left_out:
        raise NeedsWhole
    # NOTE: this costs as much as the capture, so it happens only if it must.
    context.event(f"The whole program is functionalized, because of {qualified_name(obstacle.target)} ({obstacle.name}).", logging.DEBUG)
    fixed: dict[sympy.Basic, float] = {}
    with shape_env.fixed(functools.partial(_note, fixed)):
        functional = _retraced(context, _with_graph(program, _copy(context, program, left_out)))
    for size, number in fixed.items():
        dim = dim_names.text(size)
        context.report(ConstraintViolated(dim=dim, constraint=f"{dim} == {number}"), at=locations.at_node(obstacle))
    for spec in functional.graph_signature.output_specs:
        if spec.kind in _MUTATED_KINDS and spec.target is not None:
            writer = next((node for node in functional.graph.nodes if node.name == spec.arg.name and node.op == "call_function"), None)
            _report(context, _MUTATED_KINDS[spec.kind], spec.target, None if writer is None else locations.at_node(writer))
    return functional, copy.deepcopy(functional.graph_module)


def _note(fixed: dict[sympy.Basic, float], size: sympy.Basic, number: float) -> None:
    """Notes a size that torch fixes without a guard, as where it undoes an `unfold`, but not for the shape of a fake tensor alone."""
    if not torch_frames.computes_fake_values(python_frames.outward(python_frames.current())):
        fixed[size] = number


def _report(context: DiagnosticContext, kind: str, name: str, at: Evidence | None) -> None:
    """Reports that the model updates the input or buffer `name`, unless the finding about training mode says so."""
    layer, _, buffer = name.rpartition(".")
    training = {each for rule in context.reported(TrainingMode) for each in rule.layers}
    if not (kind == "buffer" and buffer in _STATISTICS and layer in training):
        context.report(MutationDropped(kind=kind, name=name), at=at)


def _copy(
    context: DiagnosticContext, program: torch.export.ExportedProgram, left_out: Mapping[torch.fx.Node, torch.fx.Node]
) -> torch.fx.GraphModule:
    """A copy of the graph without the nodes in `left_out`, and without what does nothing in an exported model.

    These are regions that only switch gradients, `detach_`, observers that are off, and dropout in evaluation.
    """
    copied = copy_of(program.graph_module, left_out)
    observers.remove(context, program, copied)
    for module in list(graph_modules(copied)):
        inline_grad_mode(module)
        for node in list(module.graph.nodes):
            name = qualified_name(node.target)
            if failed(node):
                module.graph.erase_node(node)
                continue
            # NOTE: the schema of dropout does not say that it returns its argument, and torch loses writes to its result when it traces
            # again. It then also loses `detach_`'s replacement (both seen in 2.13).
            if name == "aten::detach_" or (name in _DROPOUT and not node.args[2]):
                node.replace_all_uses_with(node.args[0])
                module.graph.erase_node(node)
        diagonal_writes.write_to_views(module)
        hidden_views.compose(context, module)
    return copied


def _lasting(program: torch.export.ExportedProgram, graph: torch.fx.Graph) -> dict[torch.fx.Node, tuple[str, str]]:
    """The inputs of `graph` that the model may write: the kind and the name of each."""
    inputs = torch.export.graph_signature.InputKind
    kinds = {inputs.BUFFER: "buffer", inputs.USER_INPUT: "input", inputs.CONSTANT_TENSOR: "attribute"}
    nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    return {
        nodes[spec.arg.name]: (kinds[spec.kind], spec.target or spec.arg.name)
        for spec in program.graph_signature.input_specs
        if spec.kind in kinds and spec.arg.name in nodes
    }


def _returned(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The inputs of `graph` that are also its outputs, with whatever is written to them."""
    found = set()
    for each in graph.output_node().all_input_nodes:
        source = each
        # NOTE: a cache moves its length to the device of its keys, where it is.
        while isinstance(argument := next(iter(source.args), None), torch.fx.Node) and (
            mutates(source) or _changes_nothing(source, argument)
        ):
            source = argument
        found.add(source)
    return found


def _plain_inputs(program: torch.export.ExportedProgram) -> set[str]:
    """The names of the inputs that are arguments by themselves, and no parts of one."""
    args, kwargs = program.example_inputs or ((), {})
    alone = [leaf is each for each in (*args, *kwargs.values()) for leaf in pytree.tree_leaves(each)]
    return {str(name) for name, is_alone in zip(program.graph_signature.user_inputs, alone, strict=False) if is_alone}


def _changes_nothing(node: torch.fx.Node, argument: torch.fx.Node) -> bool:
    """Whether `node` is a `to` that returns its argument, which has the dtype and the device already."""
    before, after = argument.meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    return qualified_name(node.target).startswith("aten::to.") and (before.dtype, before.device) == (after.dtype, after.device)


def _with_graph(program: torch.export.ExportedProgram, graph_module: torch.fx.GraphModule) -> torch.export.ExportedProgram:
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


def _rewrite(
    root: torch.fx.GraphModule,
    lasting: Collection[torch.fx.Node],
    writers: dict[torch.fx.Node, Evidence],
    copies: joined_memory.Copies,
) -> torch.fx.Node | None:
    """Rewrites all in-place operators, and adds the last line that writes to each of `lasting` to `writers`.

    Returns the first node for which that is not possible, and leaves the graph half rewritten then.
    """
    for module in graph_modules(root):
        if any(map(mutates, module.graph.nodes)):
            obstacle = _Rewriting(module.graph, lasting, writers, copies).run()
            if obstacle is not None:
                return obstacle
    return None


class _Rewriting:
    """Rewrites the in-place operators of one graph, in order.

    Args:
        graph: The graph.
        lasting: The inputs of the graph that may be written: the caller of the exported model keeps their old data.
        writers: Gets the last line that writes to each of `lasting`.
        copies: Records writes and reads of copies that are views where a size is 1.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        lasting: Collection[torch.fx.Node],
        writers: dict[torch.fx.Node, Evidence],
        copies: joined_memory.Copies,
    ) -> None:
        self._graph = graph
        self._lasting = lasting
        self._views: dict[torch.fx.Node, View] = {}
        self._selected: dict[tuple[View, object], View] = {}
        self._replaced: list[torch.fx.Node] = []
        self._writers = writers
        self._copies = copies

    def run(self) -> torch.fx.Node | None:
        """Rewrites the graph. Returns the first node that stands in the way, and leaves the graph half rewritten then."""
        nodes: list[torch.fx.Node] = list(self._graph.nodes)
        written = [node.args[0] for node in nodes if mutates(node) and node.args and isinstance(node.args[0], torch.fx.Node)]
        concerned = aliases.groups(nodes, written)
        for node in nodes:
            try:
                with self._graph.inserting_before(node):
                    self._rewrite(node, is_concerned=node in concerned)
            except (aliases.UnknownMemory, views.Irreplaceable):
                return node
        for node in self._replaced:
            self._graph.erase_node(node)
        return None

    def _rewrite(self, node: torch.fx.Node, *, is_concerned: bool) -> None:
        read = {each: self._views[each] for each in node.all_input_nodes if each in self._views}
        for view in read.values():
            self._copies.read(view.memory)
        written = self._views.get(node.args[0]) if node.args and isinstance(node.args[0], torch.fx.Node) else None
        self._renew_inputs(node)
        if mutates(node):
            self._write(node, written)
        elif is_concerned and _has_tensors(node):
            self._record(node, list(read.values()))
            self._copies.record(node, self._views[node].memory, {each: view.memory for each, view in read.items()})

    def _renew_inputs(self, node: torch.fx.Node) -> None:
        """Replaces the inputs of `node` by their present values."""
        known = {each: self._views[each] for each in node.all_input_nodes if each in self._views}
        if known:
            present = {each: view.present(self._graph) for each, view in known.items()}
            node.args, node.kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda each: present.get(each, each))

    def _record(self, node: torch.fx.Node, read: Sequence[View]) -> None:
        """Records whose memory the result of `node` has."""
        if qualified_name(node.target) == "_operator::getitem":
            (whole,) = read
            # NOTE: results that are new memory do not share it, but two nodes may select the same result.
            made = View.of_new_memory(node)
            is_view = whole.base is not None and not aliases.selects_new_memory(node)
            self._views[node] = whole.view(node) if is_view else self._selected.setdefault((whole, node.args[1]), made)
        elif node.op != "call_function" or isinstance(node.target, OpOverload):
            source = aliases.shares_memory_with(node)
            base = None if source is None else next((view for view in read if view.value is source), None)
            if (base is None) != (source is None):
                raise aliases.UnknownMemory
            self._views[node] = View.of_new_memory(node) if base is None else base.view(node)
        else:
            self._views[node] = View.of_new_memory(node)
            for view in (self._views[node], *read):
                view.memory.is_lent = True

    def _write(self, node: torch.fx.Node, view: View | None) -> None:
        assert isinstance(node.target, OpOverload)
        functional = _functional(node.target)
        if view is None or functional is None or view.memory.is_lent:
            raise views.Irreplaceable
        if torch.Tag.inplace_view in node.target.tags:
            # NOTE: it changes how the tensor shows its memory, and not the memory.
            node.target = functional
            renewed = view.view(node)
            self._views.update({each: renewed for each, other in self._views.items() if other is view})
            self._views[node] = renewed
            return
        origin = view.memory.origin
        if origin.op != "call_function":
            if origin not in self._lasting:
                raise views.Irreplaceable
            self._writers[origin] = locations.at_node(node)
        self._views[node] = view
        self._copies.write(view.memory, node)
        copied = _copied(node)
        with self._graph.inserting_before(node.next):
            view.write(copied or node, self._graph, node)
        if copied is None:
            node.target = functional
        else:
            self._replaced.append(node)


def _has_tensors(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return any(isinstance(each, torch.Tensor) for each in (value if isinstance(value, list | tuple) else (value,)))


def _copied(node: torch.fx.Node) -> torch.fx.Node | None:
    """The tensor that `node` copies, if it has the shape and the dtype of the tensor that is written."""
    if node.target is not torch.ops.aten.copy_.default:
        return None
    target, source = node.args[:2]
    assert isinstance(target, torch.fx.Node)
    if not isinstance(source, torch.fx.Node):
        return None
    new, old = source.meta["val"], target.meta["val"]
    return source if new.dtype == old.dtype and [str(size) for size in new.shape] == [str(size) for size in old.shape] else None


@functools.cache
def _functional(target: OpOverload) -> OpOverload | None:
    """The operator that returns what `target` writes, such as `aten::relu` for `aten::relu_`.

    None if there is none, or if `target` writes to another argument than the first. The result is a view of the first argument if
    `target` only changes how a tensor shows its memory, as `aten::t_` does; otherwise it is new memory.
    """
    expected = schema(target).arguments
    written = [position for position, each in enumerate(expected) if each.alias_info is not None and each.alias_info.is_write]
    name = schema(target).name.partition("::")[2]
    plain = name[3:].removesuffix("__") if name.startswith("__i") else name.removesuffix("_")
    if written != [0]:
        return None
    is_view = torch.Tag.inplace_view in target.tags
    namespace = getattr(torch.ops, target.namespace)
    for packet in (getattr(namespace, each, None) for each in (plain, f"__{plain}__", f"{plain}_functional")):
        for overload in () if packet is None else packet.overloads():
            found: OpOverload = getattr(packet, overload)
            same = [str(each.type) for each in schema(found).arguments] == [str(each.type) for each in expected]
            returns = [each.alias_info is not None for each in schema(found).returns]
            if same and not schema(found).is_mutable and returns == [is_view]:
                return found
    return None


def _ways_without(operator: str) -> list[Fix]:
    """What to write instead of an operator, where that is known. Otherwise, the rule has the advice."""
    advice = "Use an operator with a new result instead: a slice, torch.nn.functional.pad or reshape."
    return [Fix(advice, Confidence.GUESS)] if operator in ("aten::resize_", "aten::resize_as_") else []


def _retraced(context: DiagnosticContext, program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    mutations = [node for node in all_nodes(program) if mutates(node)]
    try:
        with tracing.each_new_node(lambda *_: None), input_free_values.known(), fake_kernels.present():
            functional: torch.export.ExportedProgram = program.run_decompositions({})
    except Exception as error:
        # NOTE: torch raises exceptions of many types about mutations that it cannot remove.
        if not mutations:
            raise
        name = qualified_name(mutations[0].target)
        raise context.fail(
            MutationNotRemoved(operator=name), at=locations.at_node(mutations[0]), fixes=_ways_without(name), cause=error
        ) from error
    left: dict[torch.fx.Node, object] = {node: node.target for node in all_nodes(functional) if mutates(node)}
    # NOTE: torch wraps a custom operator that mutates its arguments in one of these. The user wrote the operator inside.
    left |= {node: node.args[0] for node in all_nodes(functional) if "::auto_functionalized" in qualified_name(node.target)}
    for node, operator in left.items():
        name = qualified_name(operator)
        context.report(MutationNotRemoved(operator=name), at=locations.at_node(node), fixes=_ways_without(name), blocking=True)
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


def _resolved_by_tracing(root: torch.fx.GraphModule) -> torch.fx.Node | None:
    """The first node that torch resolves only when it traces again.

    Until then, operators inside an autocast region have their old dtypes, those inside a torch.vmap their old shapes, and the schemas of
    normalizations do not say that they update statistics (read in torch 2.11, 2.13 and 2.15).
    """
    nodes: Iterator[torch.fx.Node] = (node for module in graph_modules(root) for node in module.graph.nodes)
    for node in nodes:
        name = qualified_name(node.target)
        if name == "higher_order::wrap_with_autocast" or name.startswith(functorch.PREDISPATCH) or _updates_statistics(node, name):
            return node
    return None


def _under_autocast(root: torch.fx.GraphModule) -> torch.fx.Node | None:
    """The first node that an autocast region around the export is about: the program has the dtypes of its results, but not its casts."""
    kinds = autocast_devices()
    nodes = (node for node in root.graph.nodes if kinds and node.op == "call_function")
    return next((node for node in nodes if isinstance(value := node.meta.get("val"), torch.Tensor) and value.device.type in kinds), None)


def _updates_statistics(node: torch.fx.Node, name: str) -> bool:
    if name not in _WITH_STATISTICS:
        return False
    given = arguments(node)
    return given["running_mean"] is not None and bool(given[_WITH_STATISTICS[name]])
