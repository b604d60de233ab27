"""Compares an exported model with PyTorch operator by operator, each computed from the values that the exported model has before it.

Where a result hangs on rounding, such as an integer that is made of a float, or on the order of equal elements, the exported model and
PyTorch may go on from different values, and both are right. Then PyTorch computes what follows from the exported model's values as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.diagnostics import Evidence
from onnxplain.passes import Prepared
from onnxplain.source import locations
from onnxplain.torch_internals.python_values import is_a

from . import eager, sessions
from .comparison import Comparison, compare, is_rounding, tolerances
from .equal_elements import is_other_choice

_OWN_SHARE = 0.2
"""The part of the tolerance within which an operator repeats a result, if it alone shall not explain a difference."""
_JUMP = 10
"""How many times larger a difference becomes in an operator that decides by rounding."""


@dataclasses.dataclass(frozen=True)
class Steps:
    """The comparison.

    Attributes:
        results: The FX node of each output; None for one that is a number.
        values: What PyTorch computes, by FX node, without a look at the exported model.
        outputs: The outputs of the exported model in this run.
        wrong: The nodes, in the order of the graph, that the exported model computes otherwise than PyTorch.
        decided: The nodes whose values differ because of rounding or of the order of equal elements.
    """

    results: Sequence[torch.fx.Node | None]
    values: Mapping[torch.fx.Node, torch.Tensor]
    outputs: Sequence[torch.Tensor]
    wrong: Sequence[torch.fx.Node]
    decided: frozenset[torch.fx.Node]

    def first_wrong(self, outputs: Iterable[int]) -> Evidence | None:
        """The place of the first node that is wrong and that one of `outputs` depends on; None if there is none."""
        before = set().union(*(_before(node) for index in outputs if (node := self.results[index]) is not None))
        return next((locations.at_node(node) for node in self.wrong if node in before), None)

    def explain(self, index: int, actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor | None) -> bool:
        """Whether an output differs from eager PyTorch only because of rounding, or of the order of equal elements.

        Args:
            index: The output.
            actual: The output of ONNX Runtime.
            expected: That of eager PyTorch.
            exact: That of eager PyTorch with float64 in place of all floating dtypes, if it is known.
        """
        node = self.results[index]
        if node is None or node not in self.decided or node not in self.values or _before(node).intersection(self.wrong):
            return False
        # NOTE: the operators of the graph round otherwise than those that the model calls, as ONNX Runtime does where it fuses operators,
        # which it can if nobody looks at the values between them.
        pairs = ((self.values[node], expected), (actual, self.outputs[index]))
        return all(not compare(got, want).differs or (exact is not None and is_rounding(got, expected, exact)) for got, want in pairs)


def compared(model: ir.Model, prepared: Prepared, inputs: Sequence[Any], write: sessions.WriteModel) -> Steps:
    """Runs the exported model once more, with an output for each FX node that it has a value for, and compares these.

    Args:
        model: The exported model.
        prepared: The program that it was made from.
        inputs: Its inputs, flat, without constants.
        write: As for `session`.
    """
    values = {value.meta[locations.FX_NODE]: value for node in model.graph for value in node.outputs if locations.FX_NODE in value.meta}
    outputs = list(model.graph.outputs)
    model.graph.outputs.extend(value for value in values.values() if value not in outputs)
    allowed = dict(zip(model.graph.outputs, tolerances(model.graph), strict=True))
    try:
        probe = sessions.session(model, write=write)
        got = dict(zip((each.name for each in probe.get_outputs()), sessions.run(probe, inputs), strict=True))
    finally:
        while len(model.graph.outputs) > len(outputs):
            model.graph.outputs.pop()
    known = {node: (got[value.name], allowed[value]) for node, value in values.items()}
    results = _results(prepared)
    known |= {node: (got[value.name], allowed[value]) for node, value in zip(results, outputs, strict=True) if node is not None}
    walk = _Walk(prepared.graph_module, known)
    with torch.no_grad():
        walk.run(*eager.flat_arguments(prepared, inputs))
    return Steps(results, walk.values, [got[value.name] for value in outputs], walk.wrong, frozenset(walk.decided))


def _results(prepared: Prepared) -> list[torch.fx.Node | None]:
    """The FX node of each output of the exported model; None for a number."""
    (results,) = prepared.graph_module.graph.output_node().args
    assert isinstance(results, list | tuple)
    specs = prepared.program.graph_signature.output_specs
    wanted = [
        result for result, spec in zip(results, specs, strict=True) if spec.kind is torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    return [result if isinstance(result, torch.fx.Node) else None for result in wanted if not isinstance(result, str | None)]


def _before(node: torch.fx.Node) -> set[torch.fx.Node]:
    """`node`, and the nodes that it depends on."""
    found, left = {node}, [node]
    while left:
        new = set(left.pop().all_input_nodes) - found
        found |= new
        left += new
    return found


class _Walk(torch.fx.Interpreter):
    """Computes each node from PyTorch's values, and from the exported model's values where these differ.

    Args:
        module: The graph.
        known: The values of the exported model, each with its tolerance.
    """

    def __init__(self, module: torch.fx.GraphModule, known: Mapping[torch.fx.Node, tuple[torch.Tensor, float]]) -> None:
        super().__init__(module)
        self._known = known
        self._others: dict[torch.fx.Node, Any] = {}
        self._apart: dict[torch.fx.Node, float] = {}
        self.values: dict[torch.fx.Node, torch.Tensor] = {}
        self.wrong: list[torch.fx.Node] = []
        self.decided: set[torch.fx.Node] = set()

    def run_node(self, n: torch.fx.Node) -> Any:
        """Runs one node, and judges the exported model's value for it."""
        result = super().run_node(n)
        own = self._on_others(n, result)
        if n.op != "call_function":
            pass
        elif not is_a(result, torch.Tensor):
            self._apart[n] = max((self._apart.get(each, 0.0) for each in n.all_input_nodes), default=0.0)
        elif n in self._known:
            self._judge(n, result, own)
        elif own is not result:
            self._apart[n] = compare(own, result).difference
        if any(each in self.decided for each in n.all_input_nodes):
            self.decided.add(n)
        if is_a(result, torch.Tensor):
            # NOTE: a later node may write to it.
            self.values[n] = result.clone()
        return result

    def _on_others(self, node: torch.fx.Node, result: Any) -> Any:
        """The result of a node for the exported model's values; `result` if these are not known, or if the node refuses them."""
        others = {each: self._others[each] for each in node.all_input_nodes if each in self._others}
        if not others:
            return result
        env, self.env = self.env, self.env | others
        try:
            self._others[node] = super().run_node(node)
        except Exception:  # noqa: BLE001  operators refuse values with any exception
            return result
        finally:
            self.env = env
        return self._others[node]

    def _judge(self, node: torch.fx.Node, result: torch.Tensor, own: torch.Tensor) -> None:
        got, tolerance = self._known[node]
        found = compare(got, result, tolerance)
        self._apart[node] = found.difference
        if found.differs and not self._is_right(node, found, compare(got, own, tolerance)):
            self.wrong.append(node)
        else:
            self._others[node] = torch.view_as_complex(got.contiguous()) if result.is_complex() else got

    def _is_right(self, node: torch.fx.Node, found: Comparison, again: Comparison) -> bool:
        """Whether a value that differs is right for the values before it. Notes what decided the difference.

        Args:
            node: The node.
            found: The comparison with PyTorch.
            again: The comparison with PyTorch for the exported model's values before it.
        """
        before = max((self._apart.get(each, 0.0) for each in node.all_input_nodes), default=0.0)
        # NOTE: integers and bools have no tolerance, so that no small faults of several operators add up to such a difference.
        jumps = found.tolerance == 0 or found.difference > _JUMP * before
        repeats = again.difference <= _OWN_SHARE * again.tolerance
        if (repeats and jumps) or is_other_choice(node, self._value_of, self._known[node][0]):
            self.decided.add(node)
            return True
        return not again.differs and any(each in self.decided for each in node.all_input_nodes)

    def _value_of(self, node: torch.fx.Node) -> Any:
        return self._others.get(node, self.values.get(node, self.env.get(node)))
