"""Captures copies of a model in which loops and branches are operators, where the model as it is cannot be captured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from onnxplain.diagnostics import DiagnosticContext, Edit, Fix
from onnxplain.request import Kind, Request
from onnxplain.rules import ControlFlowRewritten, DataDependentBranch, DataDependentValue, SpecializedDynamicDim
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import pytree

from .audit import Finished
from .eager import EagerRuns, same_results
from .finding import Finding
from .search import Search
from .trials import Trials

_ROUNDS = 6
"""How many times findings in a rewritten copy are rewritten as well."""
_REWRITTEN = "The exported model was captured with this code. Write it so to see what is exported."


class RewrittenCopies:
    """Rewrites what stopped a search, and searches again in a copy of the model, as long as the fixes of all findings are proved.

    Args:
        context: The context.
        search: The search that found no capture of the model as it is.
        trials: The trials of its findings.

    Attributes:
        search: The last search.
    """

    def __init__(self, context: DiagnosticContext, search: Search, trials: Trials) -> None:
        self._context = context
        self._first = search
        self._trials = trials
        self.search = search

    def finished(self, findings: Sequence[Finding]) -> tuple[Finished | None, list[Finding]]:
        """The capture of a rewritten copy with a note for each rewritten line; or None, and all findings of the searches.

        Args:
            findings: What stopped the first search, with the fixes that the trials left.
        """
        known, rewritten = list(findings), list[tuple[Finding, Fix]]()
        left: Sequence[Finding] = findings
        for _ in range(_ROUNDS):
            ways = [(finding, self._proved(finding)) for finding in left if finding.blocking]
            new = [(finding, fix) for finding, fix in ways if fix is not None]
            if not new or len(new) < len(ways):
                break
            rewritten = _without_covered([*rewritten, *new])
            edits = [edit for _, fix in rewritten for edit in fix.edits]
            copied = self._trials.copy(edits, shares_weights=True)
            if copied is None:
                break
            self._context.event("Capturing a copy of the model with rewritten loops and branches.")
            request = dataclasses.replace(self._first.request, model=copied)
            search = Search(self._context, request, self._first.runs.budget)
            finished = search.finished()
            if finished is not None:
                if not self._equals(edits):
                    break
                self.search = search
                return finished, [_note(finding, fix) for finding, fix in rewritten]
            self._trials = Trials(self._context, self._first.request, self._first.runs, before=edits)
            left = list(map(self._trials.tested, search.findings))
            known += left
        return None, known

    def _proved(self, finding: Finding) -> Fix | None:
        about = isinstance(finding.rule, DataDependentBranch | DataDependentValue | SpecializedDynamicDim)
        everywhere = self._first.request.control_flow == "rewrite"
        fixes = [fix for fix in finding.fixes if everywhere or not any(locations.is_users(edit.file) for edit in fix.edits)]
        return next((fix for fix in fixes if about and self._trials.has_proved(fix)), None)

    def _equals(self, edits: Sequence[Edit]) -> bool:
        """Whether a copy with `edits` computes the same as the model for other data and other sizes, if the model takes these."""
        for request in filter(None, (_negated(self._first.request), _larger(self._first.request))):
            runs = EagerRuns(self._context, request, self._first.runs.budget)
            before, copied = runs.baseline, self._trials.copy(edits)
            if before is None:
                self._context.event("The budget was spent before the rewritten copy was compared for other inputs.")
            if before is None or before.error is not None or copied is None:
                continue
            after = runs.run(copied)
            if after is not None and (after.error is not None or not same_results(before.result, after.result)):
                self._context.event("The rewritten copy computes something else for other inputs, so it is not exported.")
                return False
        return True


def _without_covered(ways: Sequence[tuple[Finding, Fix]]) -> list[tuple[Finding, Fix]]:
    """The fixes that change nothing within the place of another one, or of an equal one before: its new code contains theirs."""
    kept: list[tuple[Finding, Fix]] = []
    for number, (finding, fix) in enumerate(ways):
        others = [each for place, (_, each) in enumerate(ways) if place < number or (place > number and each.edits != fix.edits)]
        within = (
            one.file == other.file and syntax.covers(other.region, one.region)
            for each in others
            for other in each.edits
            for one in fix.edits
        )
        if not any(within):
            kept.append((finding, fix))
    return kept


def _note(finding: Finding, fix: Fix) -> Finding:
    code = fix.edits[0].replacement
    rule = ControlFlowRewritten(operator=next((name for name in ("while_loop", "scan", "cond") if f".{name}(" in code), "tensors"))
    return Finding(rule, finding.at, fixes=(dataclasses.replace(fix, description=_REWRITTEN),))


def _negated(request: Request) -> Request:
    def negated(tensor: torch.Tensor) -> torch.Tensor:
        return -tensor if tensor.is_floating_point() else tensor

    args, kwargs = pytree.map_tensors(negated, (request.args, dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)


def _larger(request: Request) -> Request | None:
    """`request` with every dynamic dim larger by 2, dims of equal size alike; None if the dims do not allow that."""
    dims = request.shapes.dynamic
    if not dims or any(dim.kind is Kind.DERIVED or not dim.allows(dim.size + 2) for dim in dims):
        return None

    def larger(value: Any, index: int) -> Any:
        for dim in dims:
            if dim.flat_index == index:
                value = value.index_select(dim.axis, torch.arange(dim.size + 2, device=value.device) % dim.size)
        return value

    changed = {id(leaf.value): larger(leaf.value, index) for index, leaf in enumerate(request.shapes.leaves)}
    args, kwargs = pytree.tree_map(lambda value: changed.get(id(value), value), (request.args, dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)
