"""Tells which of the outputs that differ from eager PyTorch are wrong, and reports why, at the line of the operator that is to blame."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.diagnostics import DIFFERENCES, DiagnosticContext, Difference, Evidence, Location, Rule, differences_text
from onnxplain.passes import Prepared
from onnxplain.request import Request
from onnxplain.rules import (
    DiffersByRounding,
    HalfOverflowed,
    KernelDiffers,
    OptimizationDiffers,
    OutputsDiffer,
    PromotionWrong,
    TranslationWrong,
)
from onnxplain.source import locations
from onnxplain.weights import as_real

from . import eager, sessions, step_by_step
from .causes import Cause
from .comparison import Comparison, compare, is_rounding
from .optimizations import Merged, merged_wrongly
from .parts import unoptimized
from .step_by_step import Steps
from .walk import Fault, operator_name

_OUTPUTS = 5
_PLACES = 5
"""The most outputs that notes tell of, and the most further calls of a wrong operator that a finding points to."""


@dataclasses.dataclass(frozen=True)
class Differing:
    """Outputs of an exported model that differ from those of eager PyTorch, for given inputs.

    Attributes:
        context: The context.
        model: The exported model, without functions.
        prepared: The program that it was made from.
        write: As for `session`.
        request: The export, with these inputs.
        inputs: The same inputs, flat, without constants.
        names: The names of all outputs.
        actual: All outputs of the exported model.
        expected: Those of eager PyTorch.
        compared: How each compares.
        place: The place of a finding without a node.
        notes: What a finding adds.
    """

    context: DiagnosticContext
    model: ir.Model
    prepared: Prepared
    write: sessions.WriteModel
    request: Request
    inputs: Sequence[Any]
    names: Sequence[str]
    actual: Sequence[torch.Tensor]
    expected: Sequence[torch.Tensor]
    compared: Sequence[Comparison]
    place: Evidence | Location | None
    notes: Sequence[str]

    def report(self, differing: Sequence[int]) -> list[int]:
        """Reports the outputs `differing`, by cause. Returns those that are wrong."""
        steps = self._steps(differing)
        if steps is None:
            self._report_unknown(differing)
            return list(differing)
        exact = [self._exact(steps, index) for index in range(len(self.expected))]
        overflows = {index: node for index in differing if (node := self._overflow(steps, index, exact[index])) is not None}
        rounded = [index for index in differing if index not in overflows and self._is_rounding(index, exact[index])]
        explained = [
            index
            for index in differing
            if index not in {*rounded, *overflows} and steps.explain(index, self.actual[index], self.expected[index], exact[index])
        ]
        reordered = [index for index in explained if steps.results[index] in steps.chosen]
        for index in reordered:
            self.context.event(f"The output {self.names[index]} differs from eager PyTorch in the order of equal elements.")
        self._report_rounding(steps, [index for index in differing if index in {*rounded, *explained} - {*reordered}])
        wrong = [index for index in differing if index not in {*rounded, *explained}]
        told: dict[torch.fx.Node, str] = {}
        for node in dict.fromkeys(overflows.values()):
            outputs = [index for index in overflows if overflows[index] is node]
            self._report_overflow(node, outputs, "PyTorch", self._outcomes(outputs))
            told[node] = HalfOverflowed.id
        if left := [index for index in wrong if index not in overflows]:
            told |= self._report_wrong(steps, left)
        self.context.attach(DIFFERENCES, lambda: differences_text(self._rows(steps, told)), logging.ERROR)
        return wrong

    def _steps(self, differing: Sequence[int], suspect: torch.fx.Node | None = None) -> Steps | None:
        """The comparison operator by operator; None, and an event, if it cannot be made."""
        try:
            return step_by_step.compared(self.model, self.prepared, self.inputs, self.write, differing, suspect)
        except Exception as error:  # noqa: BLE001  ONNX Runtime and operators refuse parts of a model with any exception
            self.context.event(f"The model could not be compared operator by operator: {type(error).__name__}: {error}", logging.WARNING)
            return None

    def _exact(self, steps: Steps, index: int) -> torch.Tensor | None:
        """An output in float64. The program tells it, if it computes what the model does."""
        node = steps.results[index]
        if node is None or node not in steps.exact or compare(steps.values[node], self.expected[index]).differs:
            found = self._exact_outputs()
            return None if found is None else found[index]
        return steps.exact[node]

    def _exact_outputs(self) -> Sequence[torch.Tensor] | None:
        found = eager.outputs_in_double(self.prepared.program, self.request)
        return found if found is not None and len(found) == len(self.expected) else None

    def _is_rounding(self, index: int, exact: torch.Tensor | None) -> bool:
        # NOTE: an integer that is made of a float tells less than a float how far it is off: `step_by_step` looks at it more closely.
        want = self.expected[index]
        return exact is not None and (want.is_floating_point() or want.is_complex()) and is_rounding(self.actual[index], want, exact)

    def _report_rounding(self, steps: Steps, outputs: Sequence[int]) -> None:
        if not outputs:
            return
        before = set().union(*map(steps.before, outputs))
        first = next((row.node for row in steps.rows if row.node in before and row.difference > row.tolerance), None)
        worst = max(outputs, key=lambda index: self.compared[index].difference)
        found = self.compared[worst]
        rule = DiffersByRounding(outputs=self._named(outputs), difference=found.difference, tolerance=found.tolerance)
        self.context.report(rule, at=self.place if first is None else locations.at_node(first), notes=self.notes)

    def _report_wrong(self, steps: Steps, wrong: Sequence[int]) -> dict[torch.fx.Node, str]:
        """Reports each fault with the outputs that depend on it. Returns the ids of the rules, by the nodes that are wrong."""
        told: dict[torch.fx.Node, str] = {}
        left = list(wrong)
        for fault in steps.faults:
            outputs = [index for index in wrong if fault in steps.faults_of(index)]
            known = fault if fault.answer is not None or len(steps.faults) > 1 else self._traced_back(steps, fault, outputs)
            if outputs and known.answer is not None:
                rule = self._report_fault(steps, known, outputs)
                told |= dict.fromkeys(known.nodes, rule.id)
                left = [index for index in left if index not in outputs]
        merged = self._merged(left)
        if left and merged is not None:
            told |= {merged.node: OptimizationDiffers.id} if merged.node is not None else {}
        elif left:
            first = next((fault.node for index in left for fault in steps.faults_of(index)), None)
            self._report_unknown(left, None if first is None else locations.at_node(first))
        return told

    def _traced_back(self, steps: Steps, fault: Fault, outputs: Sequence[int]) -> Fault:
        """The fault behind one whose operator only carries on what came before: that of the node whose own difference is the largest."""
        suspect = steps.suspect(outputs)
        again = None if suspect is None else self._steps(outputs, suspect)
        return next((each for each in again.faults if each.node is suspect), fault) if again is not None else fault

    def _merged(self, outputs: Sequence[int]) -> Merged | None:
        """Reports the nodes that an optimization of ONNX Runtime makes wrong, if all of `outputs` are right without optimizations."""
        if not outputs:
            return None
        try:
            plain = sessions.run(sessions.session(self.model, make=unoptimized, write=self.write), self.inputs)
            if any(compare(plain[index], self.expected[index], self.compared[index].tolerance).differs for index in outputs):
                return None
            merged = merged_wrongly(self.model, self.inputs, self.write)
        except Exception as error:  # noqa: BLE001  the exceptions of ONNX Runtime have no common base class but Exception
            self.context.event(f"ONNX Runtime does not run the model without optimizations: {error}", logging.WARNING)
            return None
        worst = max((self.compared[index] for index in outputs), key=lambda each: each.difference)
        found = merged or Merged((), None)
        rule = OptimizationDiffers(nodes=found.types, outputs=self._named(outputs), difference=worst.difference, tolerance=worst.tolerance)
        notes = ["Without ONNX Runtime's graph optimizations, the outputs are those of eager PyTorch.", *self.notes]
        self.context.report(rule, at=self.place if found.node is None else locations.at_node(found.node), notes=notes)
        return found

    def _overflow(self, steps: Steps, index: int, exact: torch.Tensor | None) -> torch.fx.Node | None:
        """The node of PyTorch whose overflow of float16 makes an output differ, which ONNX Runtime computes as float64 does."""
        before = steps.before(index)
        first = next((node for node in steps.overflowed if node in before), None)
        got, want, tolerance = self.actual[index], self.expected[index], self.compared[index].tolerance
        if first is None or not want.is_floating_point() or got.shape != want.shape:
            return None
        if exact is None or exact.shape != want.shape:
            return None if torch.equal(got.isfinite(), want.isfinite()) else first
        near, far = (compare(each.double(), exact.double(), tolerance) for each in (got, want))
        return first if far.differs and not near.differs else None

    def _report_fault(self, steps: Steps, fault: Fault, outputs: Sequence[int]) -> Rule:
        answer = fault.answer
        assert answer is not None
        row, names = fault.row, self._named(outputs)
        operator, difference, tolerance = fault.operator, row.difference, row.tolerance
        notes = [*self._facts(fault), *answer.shown, *self._outcomes([each for each in outputs if steps.results[each] is not fault.node])]
        if answer.cause is Cause.OVERFLOW:
            before = steps.before_node(fault.node)
            node = next((each for each in steps.overflowed if each in before), None)
            return self._report_overflow(node or fault.node, outputs, "PyTorch" if node else "the exported model", notes)
        rule: Rule
        if answer.cause is Cause.PROMOTION:
            rule = PromotionWrong(
                operator=operator, dtype=answer.dtype, outputs=names, before=row.before, difference=difference, tolerance=tolerance
            )
        elif answer.cause is Cause.KERNEL:
            rule = KernelDiffers(
                nodes=fault.onnx, operator=operator, outputs=names, before=row.before, difference=difference, tolerance=tolerance
            )
        elif answer.cause is Cause.OPTIMIZER:
            rule = OptimizationDiffers(nodes=fault.onnx, outputs=names, difference=difference, tolerance=tolerance)
        else:
            rule = TranslationWrong(operator=operator, outputs=names, before=row.before, difference=difference, tolerance=tolerance)
        at = locations.at_node(fault.node)
        if fault.script:
            notes.append(f"This script computes the operator alone:\n{fault.script}")
        others = [locations.at_node(node).location for node in fault.nodes[1 : 1 + _PLACES]]
        lines = {(each.file, each.line): each for each in others if each is not None}
        lines.pop((at.location.file, at.location.line) if at.location else ("", None), None)
        related = (*at.related, *(each.saying("another call that is wrong") for each in lines.values()))
        self.context.report(rule, at=dataclasses.replace(at, related=related), notes=[*notes, *self.notes])
        return rule

    def _facts(self, fault: Fault) -> list[str]:
        """What is known of the operator, one sentence each."""
        row = fault.row
        given, result = fault.shapes
        taken = f"takes {', '.join(given)} and " if given else ""
        already = "already differ, by" if row.before > row.tolerance else "differ only by"
        more = len(fault.nodes) - 1
        return [
            f"The operator {taken}gives {result}; its ONNX nodes: {', '.join(fault.onnx) or 'none'}.",
            f"Its inputs {already} {row.before:.3g}. From the same inputs, PyTorch computes a result that differs by {row.own:.3g}.",
            *([f"{more} more calls of the operator are wrong."] if more else []),
            *([] if "::" in fault.operator else ["It runs its own graphs, one of whose operators may be to blame."]),
        ]

    def _outcomes(self, outputs: Sequence[int]) -> list[str]:
        """How far the outputs are apart."""
        told = [
            f"The output {self.names[index]} differs by {found.difference:.4g}, more than {found.tolerance:.3g}."
            for index, found in ((each, self.compared[each]) for each in outputs[:_OUTPUTS])
        ]
        return told if len(outputs) <= _OUTPUTS else [*told, f"{len(outputs) - _OUTPUTS} more outputs differ."]

    def _report_overflow(self, node: torch.fx.Node, outputs: Sequence[int], side: str, notes: Sequence[str]) -> Rule:
        rule = HalfOverflowed(operator=operator_name(node), outputs=self._named(outputs), side=side)
        self.context.report(rule, at=locations.at_node(node), notes=[*notes, *self.notes])
        return rule

    def _report_unknown(self, outputs: Sequence[int], at: Evidence | None = None) -> None:
        for index in outputs:
            found = self.compared[index]
            rule = OutputsDiffer(output=self.names[index], difference=found.difference, tolerance=found.tolerance)
            self.context.report(rule, at=at or self.place, notes=[*self._kinds(index), *self.notes])

    def _kinds(self, index: int) -> Iterator[str]:
        """Which dtypes and shapes an output has, if they are not the same, one sentence."""
        want, got = (as_real(each) for each in (self.expected[index], self.actual[index]))
        if (want.dtype, want.shape) != (got.dtype, got.shape):
            eager, exported = (f"'{str(each.dtype).removeprefix('torch.')}{list(each.shape)}'" for each in (want, got))
            yield f"The output is {eager} in eager PyTorch and {exported} in the exported model."

    def _named(self, outputs: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.names[index] for index in outputs)

    def _rows(self, steps: Steps, faults: dict[torch.fx.Node, str]) -> list[Difference]:
        rows = []
        for row in steps.rows:
            place = locations.at_node(row.node).location
            rows.append(
                Difference(
                    node=row.node.name,
                    operator=operator_name(row.node),
                    module=place.module if place else "",
                    line=place.line if place and place.line else 0,
                    difference=row.difference,
                    own=row.own,
                    tolerance=row.tolerance,
                    rule=faults.get(row.node, ""),
                )
            )
        return rows
