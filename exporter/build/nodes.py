"""The ONNX nodes: what the translations of all FX nodes record, with names, types and origins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype

from onnxplain.diagnostics import DiagnosticContext, Evidence, described_error
from onnxplain.dispatch import Call, Plan, is_output_selection
from onnxplain.ops import control_flow
from onnxplain.recording import Recorder, Tensor, op
from onnxplain.registry import qualified_name
from onnxplain.rules import TranslationFailed
from onnxplain.source import locations, stubs
from onnxplain.weights import Weight

from . import user_translations
from .inputs_and_weights import initializer, placeholders
from .origins import Origins
from .value_types import ValueTypes, dtype_of


class NodeBuilder:
    """Translates FX nodes; the `Builder` of control flow operators, whose graphs it builds as well.

    Args:
        context: The context. It gets a finding for each translation that fails.
        plan: The translation of each node.
        recorder: Records the ONNX nodes that translations make. It has to be active while nodes are built.
        types: Gives values their dtypes and shapes.
        left_out: Nodes that are not translated. Each has the value of another one, which comes before it.

    Attributes:
        recorder: As above.
        types: As above.
        values: The ONNX value, or a list of them, or a Python value, for each FX node so far.
        failed: Whether a translation has failed.
        origins: Records where the ONNX nodes come from.
    """

    def __init__(
        self,
        context: DiagnosticContext,
        plan: Plan,
        recorder: Recorder,
        types: ValueTypes,
        left_out: Mapping[torch.fx.Node, torch.fx.Node] = MappingProxyType({}),
    ) -> None:
        self.recorder = recorder
        self.types = types
        self.values: dict[torch.fx.Node, Any] = {}
        self.failed = False
        self.origins = Origins(context.folder)
        self._left_out = left_out
        self._context = context
        self._plan = plan

    def of(self, module: torch.fx.GraphModule) -> list[ir.Node]:
        """The ONNX nodes for all FX nodes of a graph, whose placeholders have values already."""
        made: list[ir.Node] = []
        for node in module.graph.nodes:
            if (same := self._left_out.get(node)) is not None:
                self.values[node] = self.values[same]
            elif node.op == "get_attr":
                self.values[node] = self._attribute(node, getattr(module, node.target))
            elif is_output_selection(node) and isinstance(self.values[node.args[0]], list | tuple):
                selected = self.values[node] = self.values[node.args[0]][node.args[1]]
                if isinstance(selected, ir.Value):
                    selected.meta.setdefault(locations.FX_NODE, node)
            elif node.op == "call_function":
                outputs = self._translated(node)
                taken = self.recorder.take()
                self.values[node] = self._named_and_typed(node, outputs, taken)
                taken += self.recorder.take()
                self.origins.add(node, taken)
                self._note_function(node, taken)
                made.extend(taken)
        return made

    def value(self, argument: Any) -> ir.Value:
        """An argument of an FX node as an ONNX value; a constant for a Python number."""
        value = self._arguments(argument)
        return value if isinstance(value, ir.Value) else self.recorder.constant(value)

    def inputs(self, module: torch.fx.GraphModule, count: int) -> list[ir.Value]:
        """New values for the first `count` inputs of a control flow operator's graph."""
        return [self.types.assign(Tensor(name=each.name), each.meta["val"]) for each in placeholders(module)[:count]]

    def run(self, module: torch.fx.GraphModule, operands: Sequence[Any]) -> tuple[list[ir.Node], list[Any]]:
        """The ONNX nodes of a control flow operator's graph for `operands`, and its results as FX arguments."""
        self.values.update(zip(placeholders(module), operands, strict=True))
        outer = self.recorder.take()
        nodes = self.of(module)
        self.recorder.nodes = outer
        (results,) = module.graph.output_node().args
        return nodes, list(results) if isinstance(results, list | tuple) else [results]

    def graph_of(self, inputs: Sequence[ir.Value], nodes: Sequence[ir.Node], results: Sequence[Any], name: str) -> ir.Graph:
        """An ONNX graph that is an attribute of a node."""
        outputs, copies = self.outputs(results, inside=set(nodes))
        return ir.Graph(inputs, outputs, nodes=[*nodes, *copies], name=name)

    def outputs(self, results: Sequence[Any], inside: set[ir.Node] | None = None) -> tuple[list[ir.Value], list[ir.Node]]:
        """The outputs of a graph. ONNX wants each of them to be a different value that a node of this graph makes.

        Args:
            results: FX arguments.
            inside: The nodes of the graph; None for the main graph, which has all nodes.

        Returns:
            The outputs, and the Identity nodes that some of them need.
        """
        outputs: list[ir.Value] = []
        copies: list[ir.Node] = []
        for result in results:
            known = self.value(result)
            producer = known.producer()
            if producer is None or known in outputs or (inside is not None and producer not in inside):
                computed = isinstance(result, torch.fx.Node) and result.op == "call_function"
                copied = Tensor(name=result.name if computed else f"{known.name}_out", type=known.type, shape=known.shape)
                copies.append(ir.Node("", "Identity", [known], outputs=[copied]))
                if isinstance(result, torch.fx.Node):
                    self.origins.add(result, copies[-1:])
                known = copied
            outputs.append(known)
        return outputs, copies

    def _attribute(self, node: torch.fx.Node, attribute: Any) -> Any:
        """The value for a constant that is an attribute of the graph's module; a graph for one of control flow."""
        if not isinstance(attribute, torch.Tensor):
            return attribute
        value = initializer(Weight(attribute, node.name, in_state=False))
        self.recorder.constants[("attribute", node.name, id(attribute))] = value
        return value

    def _translated(self, node: torch.fx.Node) -> Any:
        if node in self._plan.calls:
            return self._call(node, self._plan.calls[node])
        if node in self._plan.untranslated:
            return self._stand_in(node)
        if is_output_selection(node):
            # NOTE: results whose number only a run tells are an ONNX sequence.
            return op.SequenceAt(self._arguments(node.args[0]), node.args[1])
        translation = control_flow.TRANSLATIONS[qualified_name(node.target)]
        results = translation(self, *self._arguments(node.args), **self._arguments(node.kwargs))
        for attribute in self.recorder.nodes[-1].attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                self.origins.add(node, attribute.as_graph())
        return results

    def _note_function(self, node: torch.fx.Node, taken: Sequence[ir.Node]) -> None:
        """Notes the function that the nodes of a translation become, if the user wants one."""
        call = self._plan.calls.get(node)
        if call is not None and not call.translation.inline:
            for each in taken:
                each.meta[locations.FUNCTION] = f"{call.translation.domain}.{call.translation.name}"

    def _call(self, node: torch.fx.Node, call: Call) -> Any:
        try:
            args, kwargs = self._arguments((call.args, dict(call.kwargs)))
            returned = call.translation.function(*args, **kwargs)
            if call.translation.origin == "user":
                return user_translations.checked(node, returned)
            _check_results(node, returned)
            return returned
        except (Exception, SystemExit) as error:  # noqa: BLE001  a translation may be the user's, and may raise anything
            self._report_failure(node, call, error)
            self.recorder.take()
            return self._stand_in(node)

    def _stand_in(self, node: torch.fx.Node) -> Any:
        """Values without a producer. They let the nodes that follow be translated as well, so that one run lists all failures."""
        value = node.meta.get("val")
        if isinstance(value, list | tuple):
            return [self.types.assign(Tensor(), each) for each in value]
        return self.types.assign(Tensor(), value)

    def _report_failure(self, node: torch.fx.Node, call: Call, error: BaseException) -> None:
        self.failed = True
        function = call.translation.function
        evidence = _with_definition(locations.at_node(node), function)
        fix = stubs.skeleton(node.target)
        if call.translation.origin == "user":
            own, fix = user_translations.fix_for(error, function, evidence.location)
            evidence = dataclasses.replace(own, node=evidence.node) if own else evidence
        self._context.report(
            TranslationFailed(operator=qualified_name(node.target), function=call.translation.name, error=described_error(error)),
            at=evidence,
            cause=error,
            fixes=[fix],
            blocking=True,
        )

    def _arguments(self, argument: Any) -> Any:
        """FX arguments as translations take them: values for nodes, ONNX dtypes (int) for those of torch, strings for devices."""
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

    def _named_and_typed(self, node: torch.fx.Node, outputs: Any, taken: list[ir.Node]) -> Any:
        """Gives the values that a translation returned their names and types. `taken` are the nodes that it recorded."""
        expected = node.meta.get("val")
        if isinstance(outputs, list | tuple):
            each_expected = expected if isinstance(expected, list | tuple) else [None] * len(outputs)
            return [
                self._finished(f"{node.name}.{index}" if len(outputs) > 1 else node.name, output, each, taken)
                for index, (output, each) in enumerate(zip(outputs, each_expected, strict=False))
            ]
        if isinstance(expected, list | tuple) and not isinstance(outputs.type, ir.SequenceType):
            return [self._finished(node.name, outputs, expected[0], taken)]
        value = self._finished(node.name, outputs, expected, taken)
        if isinstance(value, ir.Value) and value.producer() is not None:
            value.meta.setdefault(locations.FX_NODE, node)
        return value

    def _finished(self, name: str, value: Any, expected: Any, taken: list[ir.Node]) -> Any:
        if not isinstance(value, ir.Value):
            return value
        dtype = dtype_of(expected)
        is_new = value.producer() in taken
        if value.dtype is not None and dtype is not None and value.dtype is not dtype:
            # NOTE: the translation computes in another dtype than PyTorch. The graph keeps PyTorch's dtypes.
            value = op.Cast(value, to=int(dtype))
            is_new = value.producer() is not None
        if not is_new:
            # NOTE: a translation whose operators cancel out returns a value that an earlier one has made on its way, without a type.
            return self.types.assign(value, expected) if value.shape is None and value.dtype in (None, dtype) else value
        value.name = name
        return self.types.assign(value, expected)


def _check_results(node: torch.fx.Node, returned: Any) -> None:
    """Raises a ValueError if the graph uses a tensor that a translation leaves out, as some do with what only gradients need."""
    if not isinstance(returned, list | tuple):
        return
    used = sorted(user.args[1] for user in node.users if is_output_selection(user) and user.users and isinstance(user.args[1], int))
    left_out = [
        index for index in used if index < len(returned) and returned[index] is None and isinstance(node.meta["val"][index], torch.Tensor)
    ]
    if left_out:
        raise ValueError(f"ONNX has no operator for its result {left_out[0]}")


def _with_definition(evidence: Evidence, function: Callable[..., Any]) -> Evidence:
    """`evidence` with the place that defines the translation."""
    place = locations.definition_of(function)
    return evidence if place is None else dataclasses.replace(evidence, related=(*evidence.related, place.saying("the translation")))
