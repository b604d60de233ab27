"""Compares an exported model with PyTorch operator by operator, each computed from the values that the exported model has before it.

Where a result hangs on rounding, such as an integer that is made of a float, or on the order of equal elements, the exported model and
PyTorch may go on from different values, and both are right. Then PyTorch computes what follows from the exported model's values as well.
So it does behind a result that is wrong, where another one may be wrong for another reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.passes import Prepared
from onnxplain.process import exact_float32, gpu_assertions_raised, random_numbers_kept
from onnxplain.source import locations

from . import eager, sessions
from .comparison import compare, is_rounding, tolerances
from .lockstep import Lockstep
from .walk import Fault, Row, Walk

_SUSPICIOUS = 0.02
"""The part of the tolerance from which on an operator's own difference may be what grows behind it."""


@dataclasses.dataclass(frozen=True)
class Steps:
    """The comparison.

    Attributes:
        results: The FX node of each output; None for one that is a number.
        values: What PyTorch computes for the outputs, by FX node, without a look at the exported model.
        exact: The same in float64, where PyTorch can compute it.
        outputs: The outputs of the exported model in this run; None for one that no node computes.
        rows: The comparison of each node that the exported model has a value for, in the order of the graph.
        wrong: The nodes, in the order of the graph, that the exported model computes otherwise than PyTorch.
        faults: The nodes that are wrong, and not because of their inputs.
        decided: The nodes whose values differ because of rounding or of the order of equal elements.
        chosen: Those of them that the order of equal elements decided.
        overflowed: The nodes whose result in float16 is infinite in PyTorch, although what they take is finite.
        runs: How many parts of the exported model ran.
    """

    results: Sequence[torch.fx.Node | None]
    values: Mapping[torch.fx.Node, torch.Tensor]
    exact: Mapping[torch.fx.Node, torch.Tensor]
    outputs: Sequence[torch.Tensor | None]
    rows: Sequence[Row]
    wrong: Sequence[torch.fx.Node]
    faults: Sequence[Fault]
    decided: frozenset[torch.fx.Node]
    chosen: frozenset[torch.fx.Node]
    overflowed: Sequence[torch.fx.Node]
    runs: int

    def faults_of(self, index: int) -> list[Fault]:
        """The faults that an output depends on."""
        before = self.before(index)
        return [fault for fault in self.faults if before.intersection(fault.nodes)]

    def before(self, index: int) -> set[torch.fx.Node]:
        """The nodes that an output depends on."""
        node = self.results[index]
        return set() if node is None else _before([node])

    def before_node(self, node: torch.fx.Node) -> set[torch.fx.Node]:
        """A node, and those that it depends on."""
        return _before([node])

    def explain(self, index: int, actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor | None) -> bool:
        """Whether an output differs from eager PyTorch only because of rounding, or of the order of equal elements.

        Args:
            index: The output.
            actual: The output of ONNX Runtime.
            expected: That of eager PyTorch.
            exact: That of eager PyTorch with float64 in place of all floating dtypes, if it is known.
        """
        node, own = self.results[index], self.outputs[index]
        if node is None or own is None or node not in self.decided or node not in self.values or _before([node]).intersection(self.wrong):
            return False
        # NOTE: the operators of the graph round otherwise than those that the model calls, as ONNX Runtime does where it fuses operators,
        # which it can if nobody looks at the values between them.
        pairs = ((self.values[node], expected), (actual, own))
        return all(not compare(got, want).differs or (exact is not None and is_rounding(got, expected, exact)) for got, want in pairs)

    def suspect(self, outputs: Iterable[int]) -> torch.fx.Node | None:
        """The node before `outputs` whose own difference is largest, of those that rounding does not explain; None if all are small."""
        before = set().union(*map(self.before, outputs))
        rows = [row for row in self.rows if row.node in before and not row.rounds and row.own > _SUSPICIOUS * row.tolerance]
        return max(rows, key=lambda row: row.own / (row.tolerance or 1.0)).node if rows else None


def compared(
    model: ir.Model,
    prepared: Prepared,
    inputs: Sequence[Any],
    write: sessions.WriteModel,
    outputs: Iterable[int],
    suspect: torch.fx.Node | None = None,
) -> Steps:
    """Runs the exported model once more, part by part, beside the program, and compares what both have for each FX node.

    Args:
        model: The exported model.
        prepared: The program that it was made from.
        inputs: Its inputs, flat, without constants.
        write: As for `session`.
        outputs: The outputs that matter. What they do not depend on is left out.
        suspect: A node to take for a fault, unless its result is that of PyTorch.
    """
    results = _results(prepared)
    wanted = _before([node for index in outputs if (node := results[index]) is not None])
    made = [value for node in model.graph for value in node.outputs if locations.FX_NODE in value.meta]
    # NOTE: ONNX Runtime gives sequences of tensors to no one outside.
    values = {value.meta[locations.FX_NODE]: value for value in made if not isinstance(value.type, ir.SequenceType)}
    values |= {node: values[twin] for node, twin in _twins(prepared.graph_module.graph) if twin in values and node not in values}
    values |= {node: value for node, value in zip(results, model.graph.outputs, strict=True) if node is not None}
    shown = {value: None for node, value in values.items() if node in wanted} | dict.fromkeys(model.graph.outputs)
    allowed = dict(zip(shown, tolerances(model.graph, list(shown)), strict=True))
    lockstep = Lockstep(model, inputs, shown, write)
    known = {node: value for node, value in values.items() if node in wanted}
    kept = {node for node in results if node is not None}
    walk = Walk(prepared.graph_module, model, lockstep, known, allowed, wanted, kept, suspect, write)
    with torch.no_grad(), random_numbers_kept(), exact_float32(), gpu_assertions_raised():
        walk.run(*eager.flat_arguments(prepared, inputs))
    got = [walk.outputs.get(value) for value in model.graph.outputs]
    return Steps(
        results,
        walk.values,
        walk.exact_values,
        got,
        walk.rows,
        walk.wrong,
        walk.faults,
        frozenset(walk.decided),
        frozenset(walk.chosen),
        walk.overflowed,
        lockstep.runs,
    )


def _results(prepared: Prepared) -> list[torch.fx.Node | None]:
    """The FX node of each output of the exported model; None for a number."""
    (results,) = prepared.graph_module.graph.output_node().args
    assert isinstance(results, list | tuple)
    specs = prepared.program.graph_signature.output_specs
    wanted = [
        result for result, spec in zip(results, specs, strict=True) if spec.kind is torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    return [result if isinstance(result, torch.fx.Node) else None for result in wanted if not isinstance(result, str | None)]


def _twins(graph: torch.fx.Graph) -> Iterator[tuple[torch.fx.Node, torch.fx.Node]]:
    """Each node that computes the same as an earlier one, which may stand for both in the exported model, and that one."""
    first: dict[torch.fx.Node, torch.fx.Node] = {}
    seen: dict[str, torch.fx.Node] = {}
    for node in graph.nodes:
        if node.op == "call_function":
            given = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: first.get(each, each))
            first[node] = seen.setdefault(f"{node.target} {given}", node)
            if first[node] is not node:
                yield node, first[node]


def _before(nodes: Sequence[torch.fx.Node]) -> set[torch.fx.Node]:
    """`nodes`, and the nodes that they depend on."""
    found, left = set(nodes), list(nodes)
    while left:
        new = set(left.pop().all_input_nodes) - found
        found |= new
        left += new
    return found
