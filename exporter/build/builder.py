"""Builds the onnx_ir model from the plan: inputs, weights, nodes with their origin in the metadata, outputs, names."""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind

from onnxplain.diagnostics import Confidence, DiagnosticContext, Evidence, Fix, shown_path
from onnxplain.dispatch import Call, Plan, is_output_selection
from onnxplain.ops import control_flow
from onnxplain.opset import bring_to
from onnxplain.recording import FIXED, Recorder, Tensor, op, recording
from onnxplain.registry import qualified_name
from onnxplain.request import DimNames, Request
from onnxplain.rules import ComplexAsReal, ConstantOutput, NameChanged, NameUnused, NanWeight, OutputLeftOut, TranslationFailed, UnusedInput
from onnxplain.source import call_sites, locations, stubs
from onnxplain.torch_internals.operators import OpOverload
from onnxplain.weights import Weight

from . import faulty_translations

METADATA = "onnxplain"
"""Prefix of the keys in each ONNX node's `metadata_props`: `.source`, `.module`, `.fx_node`, `.operator`, and `.parent`, the
operator that was decomposed into this one."""


_LOOKED_AT = 1 << 20
"""Elements of a weight up to which it is searched for NaN. Where training has gone wrong, small weights have some, too."""


def build(context: DiagnosticContext, plan: Plan, request: Request, dim_names: DimNames) -> ir.Model:
    """Builds the model. Its values are named after the FX nodes, its initializers after the model's parameters and buffers."""
    # NOTE: tracing again may have given sizes other symbols.
    dim_names.learn(plan.prepared.program, request.shapes)
    builder = _Builder(context, plan, request, dim_names)
    others = any(call.translation.origin != "onnxplain" for call in plan.calls.values())
    with recording(builder.recorder, onnxscript=others):
        graph = builder.graph()
    if builder.failed:
        raise context.stop()
    model = ir.Model(graph, ir_version=10, producer_name="onnxplain", producer_version=_version())
    _name_values(context, model, request)
    for asked, given in builder.dims.dropped.items():
        context.report(NameChanged(kind="dim", asked=asked, given=given), at=request.caller)
    bring_to(context, model, request)
    return model


class _Builder:
    def __init__(self, context: DiagnosticContext, plan: Plan, request: Request, dim_names: DimNames) -> None:
        self.context = context
        self.plan = plan
        self.request = request
        self.program = plan.prepared.program
        self.recorder = Recorder(request.opset_version)
        self.failed = False
        self.values: dict[torch.fx.Node, Any] = {}
        self.dims = dim_names

    def graph(self) -> ir.Graph:
        """The whole graph."""
        fx_graph = self.plan.prepared.graph_module.graph
        placeholders = [node for node in fx_graph.nodes if node.op == "placeholder"]
        inputs: list[ir.Value] = []
        weights: dict[int, ir.Value] = {}
        for node, spec in zip(placeholders, self.program.graph_signature.input_specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                self.values[node] = self._input(node, spec, inputs)
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                self.values[node] = self._weight(node, spec, weights)
        nodes = self._nodes(self.plan.prepared.graph_module)
        outputs, extra = self._outputs(fx_graph)
        graph = ir.Graph(inputs, outputs, nodes=[*nodes, *extra], name="main_graph", opset_imports={"": 18})
        for value in (*weights.values(), *self.recorder.constants.values()):
            if value.uses() and value.name is not None:
                value.name = _unused(value.name, graph.initializers)
                graph.register_initializer(value)
        return graph

    def _input(self, node: torch.fx.Node, spec: InputSpec, inputs: list[ir.Value]) -> Any:
        if isinstance(spec.arg, ConstantArgument):
            return spec.arg.value
        value = self._typed(Tensor(name=self._input_name(node.name)), node.meta["val"])
        inputs.append(value)
        if isinstance(node.meta["val"], torch.Tensor) and node.meta["val"].is_complex():
            self.context.report(ComplexAsReal(kind="input", name=value.name or ""), at=locations.module_definition(self.request.model))
        if not node.users:
            self.context.report(UnusedInput(name=value.name or node.name), at=locations.module_definition(self.request.model))
        return value

    def _input_name(self, name: str) -> str:
        """The parameter's name: torch calls the placeholder of one named `input` `input_1`, as `input` is a Python function."""
        parameter = re.sub(r"_1$", "", name)
        return parameter if hasattr(builtins, parameter) else name

    def _weight(self, node: torch.fx.Node, spec: InputSpec, weights: dict[int, ir.Value]) -> ir.Value:
        assert spec.target is not None
        tensor = self.program.state_dict.get(spec.target)
        if tensor is None:
            tensor = self.program.constants[spec.target]
        # NOTE: tied weights are one tensor under several names, and one initializer.
        if id(tensor) in weights:
            known = weights[id(tensor)].const_value
            assert isinstance(known, Weight)
            known.names.append(spec.target)
        else:
            fixed = spec.kind is InputKind.CONSTANT_TENSOR or (spec.kind is InputKind.BUFFER and not spec.persistent)
            weight = Weight(tensor, spec.target, in_state=not fixed, place=len(weights))
            weights[id(tensor)] = _initializer(weight)
            weights[id(tensor)].meta[FIXED] = fixed and weight.has_data
            if weight.has_data and node.users and tensor.is_floating_point() and tensor.numel() <= _LOOKED_AT and _has_nan(tensor):
                self.context.report(NanWeight(name=spec.target), at=locations.at_node(next(iter(node.users))))
        return weights[id(tensor)]

    def _nodes(self, module: torch.fx.GraphModule) -> list[ir.Node]:
        """The ONNX nodes for all FX nodes of `module`."""
        made: list[ir.Node] = []
        for node in module.graph.nodes:
            if node.op == "get_attr":
                self.values[node] = attribute = getattr(module, node.target)
                if isinstance(attribute, torch.Tensor):
                    self.values[node] = _initializer(Weight(attribute, node.name, in_state=False))
                    self.recorder.constants[("attribute", node.name, id(attribute))] = self.values[node]
            elif is_output_selection(node) and isinstance(self.values[node.args[0]], list | tuple):
                self.values[node] = self.values[node.args[0]][node.args[1]]
            elif node.op == "call_function":
                outputs = self._outputs_of(node)
                taken = self.recorder.take()
                self.values[node] = self._finish(node, outputs, taken)
                taken += self.recorder.take()
                self._describe(node, taken)
                made.extend(taken)
        return made

    def _outputs_of(self, node: torch.fx.Node) -> Any:
        if node in self.plan.calls:
            return self._call(node, self.plan.calls[node])
        if is_output_selection(node):
            # A result whose length is known at run time only is an ONNX sequence.
            return op.SequenceAt(self._arguments(node.args[0]), node.args[1])
        translation = control_flow.TRANSLATIONS[qualified_name(node.target)]
        results = translation(self, *self._arguments(node.args), **self._arguments(node.kwargs))
        for attribute in self.recorder.nodes[-1].attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                self._describe(node, attribute.as_graph())
        return results

    def _call(self, node: torch.fx.Node, call: Call) -> Any:
        args, kwargs = self._arguments((call.args, dict(call.kwargs)))
        try:
            returned = call.translation.function(*args, **kwargs)
            return _returned(node, returned) if call.translation.origin == "user" else returned
        except Exception as error:
            self.failed = True
            function = call.translation.function
            evidence = _with_definition(locations.at_node(node), function)
            fix = stubs.skeleton(node.target)
            if call.translation.origin == "user":
                own, fix = faulty_translations.mending(error, function, evidence.location)
                evidence = dataclasses.replace(own, node=evidence.node) if own else evidence
            self.context.report(
                TranslationFailed(
                    operator=qualified_name(node.target), function=call.translation.name, error=f"{type(error).__name__}: {error}"
                ),
                at=evidence,
                cause=error,
                fixes=[fix],
                blocking=True,
            )
            self.recorder.take()
            # NOTE: stand-ins, so that the nodes behind it are translated, too, and all failures are listed in one run.
            value = node.meta.get("val")
            return [self._typed(Tensor(), each) for each in value] if isinstance(value, list | tuple) else self._typed(Tensor(), value)

    def _arguments(self, argument: Any) -> Any:
        """FX arguments as translations want them: values for nodes, ONNX dtypes (int) for torch's, strings for devices."""
        if isinstance(argument, torch.fx.Node):
            return self.values[argument]
        if isinstance(argument, tuple):
            return tuple(self._arguments(each) for each in argument)
        if isinstance(argument, list):
            return [self._arguments(each) for each in argument]
        if isinstance(argument, dict):
            return {key: self._arguments(each) for key, each in argument.items()}
        if isinstance(argument, torch.dtype):
            return int(from_torch_dtype(argument))
        if isinstance(argument, torch.device | torch.memory_format | torch.layout):
            return str(argument)
        return argument

    def _finish(self, node: torch.fx.Node, outputs: Any, taken: list[ir.Node]) -> Any:
        """Names and types what a translation returned."""
        expected = node.meta.get("val")
        if isinstance(outputs, list | tuple):
            expecteds = expected if isinstance(expected, list | tuple) else [None] * len(outputs)
            return [
                self._finished(f"{node.name}.{index}" if len(outputs) > 1 else node.name, output, each, taken)
                for index, (output, each) in enumerate(zip(outputs, expecteds, strict=False))
            ]
        if isinstance(expected, list | tuple) and not isinstance(outputs.type, ir.SequenceType):
            return [self._finished(node.name, outputs, expected[0], taken)]
        value = self._finished(node.name, outputs, expected, taken)
        if isinstance(value, ir.Value) and value.producer() is not None:
            value.meta.setdefault(locations.FX_NODE, node)
        return value

    def _finished(self, name: str, value: Any, expected: Any, taken: list[ir.Node]) -> Any:
        if not isinstance(value, ir.Value) or value.producer() not in taken:
            return value
        dtype = _dtype(expected)
        if value.dtype is not None and dtype is not None and value.dtype is not dtype:
            # NOTE: the translation computes in another dtype than PyTorch; the graph's types must stay PyTorch's.
            value = op.Cast(value, to=int(dtype))
        value.name = name
        return self._typed(value, expected)

    def _typed(self, value: ir.Value, expected: Any) -> ir.Value:
        """Gives `value` the dtype and shape of a fake value; complex tensors are real ones with a last dim of size 2."""
        dtype = _dtype(expected)
        if dtype is not None:
            value.type = ir.TensorType(dtype)
            shape = list(getattr(expected, "shape", ()))
            if isinstance(expected, torch.Tensor) and expected.is_complex():
                shape.append(2)
            value.shape = ir.Shape([self.dims.of(dim) for dim in shape])
        return value

    def _describe(self, node: torch.fx.Node, made: Iterable[ir.Node]) -> None:
        facts = {"fx_node": node.name, "operator": qualified_name(node.target)}
        called = node.meta.get("original_aten")
        if isinstance(called, OpOverload) and called is not node.target:
            facts["parent"] = qualified_name(called)
        place = locations.at_node(node).location
        if place is not None:
            facts["source"] = f"{shown_path(place.file)}:{place.line}"
            facts["module"] = place.module
        for each in made:
            if locations.FX_NODE in each.meta:
                # What control flow runs is of its own line.
                continue
            each.meta[locations.FX_NODE] = node
            each.metadata_props.update({f"{METADATA}.{key}": text for key, text in facts.items() if text})

    def value(self, argument: Any) -> ir.Value:
        """An argument of an FX node as an ONNX value; a constant for a Python number."""
        value = self._arguments(argument)
        return value if isinstance(value, ir.Value) else self.recorder.constant(value)

    def inputs(self, module: torch.fx.GraphModule, count: int) -> list[ir.Value]:
        """New values for the first `count` inputs of a control flow operator's graph."""
        return [self._typed(Tensor(name=each.name), each.meta["val"]) for each in _placeholders(module)[:count]]

    def run(self, module: torch.fx.GraphModule, operands: Sequence[Any]) -> tuple[list[ir.Node], list[Any]]:
        """The ONNX nodes of a control flow operator's graph on `operands`, and its results as FX arguments."""
        self.values.update(zip(_placeholders(module), operands, strict=True))
        outer = self.recorder.take()
        nodes = self._nodes(module)
        self.recorder.nodes = outer
        (results,) = module.graph.output_node().args
        return nodes, list(results) if isinstance(results, list | tuple) else [results]

    def graph_of(self, inputs: Sequence[ir.Value], nodes: Sequence[ir.Node], results: Sequence[Any], name: str) -> ir.Graph:
        """An ONNX graph that is an attribute of a node."""
        outputs, extra = self._results(results, inside=set(nodes))
        return ir.Graph(inputs, outputs, nodes=[*nodes, *extra], name=name)

    def _outputs(self, fx_graph: torch.fx.Graph) -> tuple[list[ir.Value], list[ir.Node]]:
        (results,) = fx_graph.output_node().args
        specs = self.program.graph_signature.output_specs
        wanted = [result for result, spec in zip(results, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]  # type: ignore[arg-type]
        kept = [result for result in wanted if not isinstance(result, str | None)]
        if len(kept) < len(wanted):
            left_out = tuple(repr(result) for result in wanted if isinstance(result, str | None))
            self.context.report(OutputLeftOut(values=left_out), at=locations.last_return(self.request.model))
        outputs, extra = self._results(kept)
        for result, value in zip(kept, outputs, strict=True):
            if isinstance(result, torch.fx.Node) and isinstance(known := result.meta.get("val"), torch.Tensor) and known.is_complex():
                self.context.report(ComplexAsReal(kind="output", name=value.name or ""), at=locations.at_node(result))
            node = value.producer()
            made = node.inputs[0] if node is not None and node.op_type == "Identity" else value
            if made is not None and made.const_value is not None:
                at = locations.at_node(result) if isinstance(result, torch.fx.Node) else locations.last_return(self.request.model)
                self.context.report(ConstantOutput(name=value.name or ""), at=at)
        return outputs, extra

    def _results(self, results: Sequence[Any], inside: set[ir.Node] | None = None) -> tuple[list[ir.Value], list[ir.Node]]:
        """Graph outputs, each a value of its own that a node of this graph makes: ONNX wants that."""
        outputs: list[ir.Value] = []
        copies: list[ir.Node] = []
        for result in results:
            known = self.value(result)
            producer = known.producer()
            if producer is None or known in outputs or (inside is not None and producer not in inside):
                computed = isinstance(result, torch.fx.Node) and result.op == "call_function"
                copied = Tensor(name=result.name if computed else f"{known.name}_out", type=known.type, shape=known.shape)
                copies.append(ir.Node("", "Identity", [known], outputs=[copied], version=16))
                if isinstance(result, torch.fx.Node):
                    self._describe(result, copies[-1:])
                known = copied
            outputs.append(known)
        return outputs, copies


def _placeholders(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _has_nan(tensor: torch.Tensor) -> bool:
    # NOTE: a sum is one number instead of a flag for each element; it is also NaN where both infinities are. Torch adds no 8-bit floats up.
    seen = tensor if tensor.dtype.itemsize == 1 else tensor.sum()
    return bool(seen.isnan().any()) and bool(tensor.isnan().any())


def _initializer(weight: Weight) -> ir.Value:
    return Tensor(name=weight.name, shape=ir.Shape(weight.shape), type=ir.TensorType(weight.dtype), const_value=weight)


def _dtype(expected: Any) -> ir.DataType | None:
    match expected:
        case torch.Tensor() if expected.is_complex():
            return ir.DataType.DOUBLE if expected.dtype is torch.complex128 else ir.DataType.FLOAT
        case torch.Tensor():
            return from_torch_dtype(expected.dtype)
        case torch.SymBool() | bool():
            return ir.DataType.BOOL
        case torch.SymInt() | int():
            return ir.DataType.INT64
        case torch.SymFloat() | float():
            return ir.DataType.FLOAT
        case _:
            return None


def _with_definition(evidence: Evidence, function: Callable[..., Any]) -> Evidence:
    """`evidence` with the place where the translation is defined."""
    place = locations.definition_of(function)
    return evidence if place is None else dataclasses.replace(evidence, related=(*evidence.related, place.saying("the translation")))


def _returned(node: torch.fx.Node, returned: Any) -> Any:
    """What a translation of the user's returned, with a value for every result of `node` that is used.

    Raises:
        TypeError: There are more values than the operator has results, or something else than a value.
    """
    expected = node.meta.get("val")
    if expected is None or (isinstance(returned, ir.Value) and isinstance(returned.type, ir.SequenceType)):
        return returned
    several = isinstance(expected, list | tuple)
    wanted = list(expected) if several else [expected]
    values = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(values) > len(wanted):
        raise TypeError(f"it returns {len(values)} values, and the operator has {len(wanted)}")
    values += [None] * (len(wanted) - len(values))
    apart = several and all(map(is_output_selection, node.users))
    used = {user.args[1] for user in node.users if user.users} if apart else range(len(wanted))
    for index, (value, want) in enumerate(zip(values, wanted, strict=True)):
        if index in used and not (isinstance(value, ir.Value) or (isinstance(value, int | float) and not isinstance(want, torch.Tensor))):
            raise TypeError(f"it returns {value!r} where the operator has result {index + 1} of {len(wanted)}, and no ONNX value")
    return values if several else values[0]


def _name_values(context: DiagnosticContext, model: ir.Model, request: Request) -> None:
    """Gives every value of the model a name of its own: those that the user asked for first, then inputs, outputs and weights."""
    graph = model.graph
    taken: dict[str, None] = {}

    def name(value: ir.Value, wanted: str) -> None:
        value.name = _unused(wanted, taken)
        taken[value.name] = None

    for kind, values, names in (("input", graph.inputs, request.input_names), ("output", graph.outputs, request.output_names)):
        for unused in names[len(values) :]:
            at, fix = _names_at(request, kind, names, len(values))
            context.report(NameUnused(kind=kind, name=unused, count=len(values)), at=at, fixes=[fix])
        for index, value in enumerate(values):
            asked = names[index] if index < len(names) else None
            name(value, asked or value.name or f"{kind}_{index}")
            if asked and value.name != asked:
                at, _ = _names_at(request, kind, names, len(values))
                context.report(NameChanged(kind=kind, asked=asked, given=value.name or ""), at=at)
    initializers = list(graph.initializers.values())
    fixed = {id(value) for value in (*graph.inputs, *graph.outputs, *initializers)}
    for value in initializers:
        graph.initializers.pop(value.name)  # type: ignore[arg-type]
        name(value, value.name or "weight")
        graph.register_initializer(value)
    for value in (value for subgraph in graph.subgraphs() for value in subgraph.inputs):
        name(value, value.name or "input")
    for node in graph.all_nodes():
        for value in node.outputs:
            if id(value) not in fixed:
                name(value, value.name or f"{node.op_type.lower()}_{len(taken)}")
        node.name = f"{node.op_type}_{node.outputs[0].name}"


def _names_at(request: Request, kind: str, names: Sequence[str], count: int) -> tuple[Evidence, Fix]:
    """Where `input_names` or `output_names` are written, and the fix that leaves `count` of them."""
    place = call_sites.argument(request, f"{kind}_names", lambda node: call_sites.literal(node) in (list(names), tuple(names)))
    fewer = list(names[:count])
    edits = () if place is None else place.replaced(repr(fewer))
    fix = Fix("Give as many names as there are values.", Confidence.SAFE, edits, "" if edits else f"{kind}_names={fewer!r}")
    return call_sites.at(place, request), fix


def _unused(wanted: str, taken: Mapping[str, object]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _version() -> str:
    from importlib.metadata import version

    return version("onnxplain")
