"""Outlines: the nodes of each module call become a function, and a call of it takes their place."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable, Sequence

import onnx_ir as ir

from onnxplain import weights
from onnxplain.diagnostics import DiagnosticContext
from onnxplain.request import Request
from onnxplain.rules import ArgumentIgnored
from onnxplain.source import locations
from onnxplain.source.module_calls import ModuleCall, class_name

from .names import Names
from .regions import Region, regions
from .stacks import stacks
from .structure import structure
from .values import inner_nodes, reads, replace_reads

_OLDEST = 8
"""The first version of the IR with functions; it came with opset 15."""
_SMALL = 1024
"""The largest constant that each function has a copy of, in bytes. Larger ones are inputs, as weights are."""


def wanted(model: ir.Model, request: Request) -> bool:
    """Whether `request` or a translation of the user asks for functions."""
    return request.functions is not None or any(locations.FUNCTION in node.meta for node in model.graph)


def outline(context: DiagnosticContext, model: ir.Model, request: Request) -> ir.Model:
    """A model in which the nodes of each module call that `request` selects are a call of a function, and those of user's functions.

    The inputs, outputs and weights stay. Calls of equal structure share a function.

    Args:
        context: The context.
        model: A model without functions, for which some are `wanted`.
        request: The export.

    Returns:
        The model with functions. It is a copy that shares the weights if the export is verified, which needs both.
    """
    asked = request.functions
    if model.ir_version < _OLDEST:
        reason = f"functions need opset 15 or newer, and opset_version is {request.opset_version}"
        context.report(ArgumentIgnored(argument="inline" if asked is None else asked.argument, reason=reason), at=request.caller)
        return model
    if request.verify:
        # NOTE: a verification looks for a difference in the model without functions.
        model = model.clone()
    outlining = Outlining(context, model, request, frozenset())
    outlining.inner()
    outlining.tell()
    return model


def begin(context: DiagnosticContext, model: ir.Model, request: Request, enclosing: Collection[str]) -> Outlining | None:
    """Makes functions of module calls, but for the calls around them.

    Args:
        context: The context.
        model: A model without functions.
        request: The export.
        enclosing: The keys of the calls around them.

    Returns:
        What makes functions of these as well; None if the functions have to be made all at once. The model stays as it is then.
    """
    all_at_once = request.functions is None or request.verify or model.ir_version < _OLDEST
    if all_at_once or any(locations.FUNCTION in node.meta for node in model.graph):
        return None
    outlining = Outlining(context, model, request, enclosing)
    outlining.inner()
    return outlining


class Outlining:
    """Makes the functions of a model.

    Args:
        context: The context.
        model: The model.
        request: The export.
        enclosing: The keys of the module calls that become functions after all others.
    """

    def __init__(self, context: DiagnosticContext, model: ir.Model, request: Request, enclosing: Collection[str]) -> None:
        self._context = context
        self.model = model
        self._graph = model.graph
        selected = () if request.functions is None else request.functions.classes
        self._classes = None if selected is None else set(map(class_name, selected))
        self._enclosing = enclosing
        self._around: dict[str, ModuleCall] = {}
        self._names = Names(model, self._around)
        self._known: dict[Hashable, ir.Function] = {}

    def inner(self) -> None:
        """Makes functions of the calls that enclose no others of `enclosing`."""
        self._outline(enclosing=False)

    def end(self) -> ir.Model:
        """The model with functions of the calls in `enclosing` as well."""
        self._outline(enclosing=True)
        self.tell()
        return self.model

    def tell(self) -> None:
        """Puts the functions in the order of the calls, and records how many calls there are."""
        found: dict[ir.OperatorIdentifier, int] = {}
        calls = self._count(self._graph, found)
        functions = dict(self.model.functions)
        self.model.functions.clear()
        self.model.functions.update({each: functions[each] for each in found})
        self._context.event(f"{calls} calls became calls of {len(self.model.functions)} functions.")

    def _count(self, nodes: Iterable[ir.Node], found: dict[ir.OperatorIdentifier, int]) -> int:
        """How many calls there are, also within functions. `found` gets the functions, those that others call before these."""
        count = 0
        for node in nodes:
            name = node.op_identifier()
            if name in self.model.functions:
                if name not in found:
                    found[name] = self._count(self.model.functions[name], found)
                count += 1 + found[name]
        return count

    def _outline(self, *, enclosing: bool) -> None:
        self._weights = set(weights.of(self.model))
        self._owners = {each: node for node in self._graph for each in inner_nodes(node)}
        found = stacks(self._graph, self._classes, self._weights)
        for stack in dict.fromkeys(found.values()):
            self._around.update((call.key, outer) for outer, call in itertools.pairwise(stack) if outer.key in self._enclosing)
        calls = {node: tuple(each for each in stack if (each.key in self._enclosing) is enclosing) for node, stack in found.items()}
        root, flat = regions(calls)
        for call in flat:
            self._context.event(f"The call of {call.path} is no function: nodes outside of it have to run between its nodes.")
        self._graph.remove(list(self._graph))
        self._graph.extend(self._nodes(root))
        for name, value in list(self._graph.initializers.items()):
            if not value.uses() and not value.is_graph_output() and value not in self._weights:
                del self._graph.initializers[name]

    def _nodes(self, region: Region) -> list[ir.Node]:
        return [node for item in region.items for node in ([item] if isinstance(item, ir.Node) else self._called(item))]

    def _called(self, region: Region) -> list[ir.Node]:
        """The call of a region's function; its nodes if nothing reads what they compute."""
        body = self._nodes(region)
        call = region.call
        assert call is not None
        inside = set(body)
        outputs = [value for node in body for value in node.outputs if self._is_read_outside(value, inside)]
        if not outputs:
            return body
        read = dict.fromkeys(value for node in body for value in reads(node) if value.producer() not in inside)
        constants = [value for value in read if self._is_constant(value)]
        given = [value for value in read if not self._is_constant(value)]
        given.sort(key=lambda value: value in self._weights)
        key = call.class_name, structure(given, body, outputs)
        is_new = key not in self._known
        results = [_like(value) for value in outputs]
        for old, new in zip(outputs, results, strict=True):
            self._replace_outside(old, new, inside)
        if is_new:
            self._known[key] = self._function(call, given, constants, body, outputs)
        else:
            for node in body:
                replace_reads(node, dict.fromkeys(reads(node)))
        function = self._known[key]
        node = ir.Node(function.domain, function.name, given, outputs=results, name=self._names.of_call(region))
        node.metadata_props.update({"onnxplain.module": call.path, "onnxplain.class": call.class_name})
        node.meta.update(body[-1].meta)
        node.meta[locations.CALL] = call
        return [node]

    def _function(
        self,
        call: ModuleCall,
        given: Sequence[ir.Value],
        constants: Sequence[ir.Value],
        body: Sequence[ir.Node],
        outputs: Sequence[ir.Value],
    ) -> ir.Function:
        taken = {value.name for node in body for each in (node, *inner_nodes(node)) for value in each.outputs}
        inputs = {}
        for value in given:
            name = value.name or "input"
            if value in self._weights:
                name = name.removeprefix(f"{call.path}.")
            while name in taken:
                name += "_"
            taken.add(name)
            inputs[value] = ir.Value(name=name, type=value.type, shape=value.shape)
        made = [_constant(value) for value in constants]
        copies = {value: node.outputs[0] for value, node in zip(constants, made, strict=True)}
        for node in body:
            replace_reads(node, {**inputs, **copies})
        nodes = [*made, *body]
        domains = {each.domain for node in nodes for each in (node, *inner_nodes(node))}
        imports = {domain: self._graph.opset_imports.get(domain, 1) for domain in sorted({"", *domains})}
        domain, name = self._names.of_function(call.class_name)
        graph = ir.Graph(list(inputs.values()), outputs, nodes=nodes, opset_imports=imports, name=name)
        graph.metadata_props["onnxplain.class"] = call.class_name
        function = ir.Function(domain, name, graph=graph, attributes=())
        self.model.functions[function.identifier()] = function
        self._graph.opset_imports[domain] = 1
        return function

    def _is_constant(self, value: ir.Value) -> bool:
        tensor = value.const_value
        return value.is_initializer() and value not in self._weights and tensor is not None and tensor.nbytes <= _SMALL

    def _is_read_outside(self, value: ir.Value, inside: set[ir.Node]) -> bool:
        return value.is_graph_output() or any(self._owners.get(node, node) not in inside for node, _ in value.uses())

    def _replace_outside(self, old: ir.Value, new: ir.Value, inside: set[ir.Node]) -> None:
        for node, index in list(old.uses()):
            if self._owners.get(node, node) not in inside:
                node.replace_input_with(index, new)
        if old.is_graph_output():
            self._graph.outputs[:] = [new if value is old else value for value in self._graph.outputs]


def _like(value: ir.Value) -> ir.Value:
    """A value that takes the place of `value` outside of a function."""
    made = ir.Value(name=value.name, type=value.type, shape=value.shape)
    made.meta.update(value.meta)
    made.metadata_props.update(value.metadata_props)
    return made


def _constant(value: ir.Value) -> ir.Node:
    assert value.const_value is not None
    made = ir.Value(name=value.name, type=value.type, shape=value.shape)
    return ir.Node("", "Constant", [], [ir.AttrTensor("value", value.const_value)], outputs=[made], name=f"Constant_{value.name}")
