"""Captures copies of a model in which loops and branches are operators, where the model as it is cannot be captured."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from onnxplain.diagnostics import Confidence, DiagnosticContext, Edit, Fix
from onnxplain.process import Budget
from onnxplain.request import FXGraphExtractor, InputDim, Kind, Request
from onnxplain.rules import (
    CaptureFailed,
    ConstraintViolated,
    ControlFlowRewritten,
    DataDependentBranch,
    DataDependentValue,
    NumpyUsed,
    PackedSequenceUsed,
    SpecializedDynamicDim,
)
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import modules, pytree
from onnxplain.torch_internals.python_values import is_a

from .audit import Finished
from .eager import EagerRuns, same_results
from .finding import Finding
from .search import Search
from .trials import Trials, edited_code

_ROUNDS = 6
"""How many times findings in a rewritten copy are rewritten as well."""
_COMPARISONS = 8
"""How many runs may compare the copies with the model, beside those that try fixes."""
_REWRITABLE = (DataDependentBranch, DataDependentValue, NumpyUsed, PackedSequenceUsed, SpecializedDynamicDim, ConstraintViolated)
_REWRITTEN = "The exported model was captured with this code. Write it so to see what is exported."


_NO_GRADIENT = "Where PyTorch records gradients, as in training, it does not run this torch.while_loop."


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
        self._comparing = Budget(runs=_COMPARISONS)
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
            ways = [(finding, fix) for finding, fix in ways if fix is not None or not _is_within(finding, ways)]
            new = [(finding, fix) for finding, fix in ways if fix is not None]
            if not all(fix is not None or _is_covered(finding, new) or _may_follow(finding, new) for finding, fix in ways) or not new:
                break
            rewritten = _without_covered([*rewritten, *new])
            edits = [edit for _, fix in rewritten for edit in fix.edits]
            copied = self._trials.copy(edits, shares_weights=True)
            if copied is None:
                break
            self._context.event("Capturing a copy of the model with rewritten loops and branches.")
            # NOTE: dims that only the capture of the model as it is fixes stay dynamic.
            request = dataclasses.replace(self._first.asked, model=copied, strategies=_without_strict(self._first.asked.strategies))
            search = Search(self._context, request, self._first.runs.budget)
            finished = search.finished()
            if finished is None and "strict" in self._first.asked.strategies and _failed_in_torch(search):
                # NOTE: what an operator calls may read no number that data decide, unless torch compiles all of the model.
                search = Search(self._context, dataclasses.replace(request, strategies=("strict",)), self._first.runs.budget)
                finished = search.finished()
            if finished is not None:
                certain = [sizes for finding, _ in rewritten for sizes in finding.certain]
                if not self._equals(edits, dataclasses.replace(finished.request, model=self._first.asked.model), certain):
                    break
                self.search = search
                counts = collections.Counter(_operator(fix) for _, fix in rewritten)
                told = ", ".join(f"{count} as {operator}" for operator, count in counts.items())
                self._context.event(f"Loops and branches that were rewritten: {told}.")
                model = self._first.request.model
                trains = is_a(model, torch.nn.Module) and any(each.requires_grad for _, each in modules.named_tensors(model))
                return finished, [_note(finding, fix, trains=trains) for finding, fix in rewritten]
            self._trials = Trials(self._context, self._first.request, self._first.runs, before=edits)
            left = list(map(self._trials.tested, search.findings))
            known += left
        return None, known

    def _proved(self, finding: Finding) -> Fix | None:
        about = isinstance(finding.rule, _REWRITABLE)
        everywhere = self._first.request.control_flow == "rewrite"
        fixes = [fix for fix in finding.fixes if everywhere or not any(locations.is_users(edit.file) for edit in fix.edits)]
        return next((fix for fix in fixes if about and self._trials.has_proved(fix)), None)

    def _equals(self, edits: Sequence[Edit], request: Request, certain: Sequence[Mapping[InputDim, int]]) -> bool:
        """Whether a copy with `edits` computes the same as the model for other data and other sizes.

        A model that runs with no other size than the example's tells nothing about them, so its copy is not used.

        Args:
            edits: The edits.
            request: The export of the model as it is, with the dims that vary in the copy.
            certain: Sizes that the model treats in another way than the copy does, which is right only if it makes no difference.
        """
        comparing = Budget(runs=2 * len(certain))
        for number, sizes in enumerate(certain):
            if sizes in certain[:number]:
                continue
            fits = _of_sizes(request, {dim: sizes.get(dim, dim.size) for dim in request.shapes.dynamic}, _again)
            if not comparing.is_open or (fits is not None and self._compared(edits, _negated(fits), comparing) is False):
                return False
        # NOTE: the last one keeps elements in order, such as the lengths of a packed sequence, which a model may ask for.
        ways = ((_more, _again), (_twice, _again), (_less, _again), (_twice, _in_order))
        resized = [each for way in ways if (each := _resized(request, *way)) is not None]
        # NOTE: what an earlier run left, such as a cache, may count for inputs of its size alone.
        if edited_code.asks_for_export(edits) and self._compared(edits, _negated(request)) is False:
            return False
        if (same := self._compared(edits, _negated(resized[0] if resized else request))) is not None:
            return same
        if resized and self._compared(edits, _negated(request)) is False:
            return False
        for other in resized:
            if (same := self._compared(edits, other)) is not None:
                return same
        if resized or not self._comparing.is_open:
            self._context.event("The model could not be run with other inputs, so the rewritten copy is not exported.")
            return False
        return True

    def _compared(self, edits: Sequence[Edit], request: Request, comparing: Budget | None = None) -> bool | None:
        """Whether a copy with `edits` does the same as the model with the inputs of `request`; None if they could not be compared."""
        runs = EagerRuns(self._context, request, comparing or self._comparing)
        before, copied = runs.baseline, self._trials.copy(edits)
        with edited_code.as_exported(edits):
            after = None if before is None or before.error is not None or copied is None else runs.run(copied)
        if before is None or after is None:
            return None
        same = after.error is None and same_results((before.result, before.inputs), (after.result, after.inputs))
        if not same:
            self._context.event("The rewritten copy computes something else for other inputs, so it is not exported.")
        return same


def _without_strict(strategies: tuple[str | FXGraphExtractor, ...]) -> tuple[str | FXGraphExtractor, ...]:
    """`strategies` for a copy: what stops one of torch's own stops the other, and each further line to rewrite needs another capture."""
    return tuple(each for each in strategies if each != "strict") or strategies


def _failed_in_torch(search: Search) -> bool:
    return any(finding.blocking and isinstance(finding.rule, CaptureFailed) for finding in search.findings)


def _is_covered(finding: Finding, ways: Sequence[tuple[Finding, Fix]]) -> bool:
    """Whether the new code of a fix replaces the place of `finding`, such as that of a loop within a loop."""
    place = finding.at.location
    if place is None or place.region is None:
        return False
    return any(edit.file == place.file and syntax.covers(edit.region, place.region) for _, fix in ways for edit in fix.edits)


def _may_follow(finding: Finding, ways: Sequence[tuple[Finding, Fix]]) -> bool:
    """Whether a line may stop a capture only because another line does, which has a fix: the next capture tells.

    It may fix a dim of equal size, or make the number on which the other line branches.
    """
    if isinstance(finding.rule, DataDependentValue):
        file, line = finding.place
        about = [other.place for other, _ in ways if isinstance(other.rule, DataDependentBranch | DataDependentValue)]
        return any(place[0] == file and (line or 0) < (place[1] or 0) for place in about)
    rules = (finding.rule, *(other.rule for other, _ in ways))
    sizes = [rule.value for rule in rules if isinstance(rule, SpecializedDynamicDim)]
    return isinstance(finding.rule, SpecializedDynamicDim) and finding.rule.value in sizes[1:]


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


def _is_within(finding: Finding, ways: Sequence[tuple[Finding, Fix | None]]) -> bool:
    """Whether `finding` is behind another one, in a loop that the fix of that changes: the next capture tells what is left of it."""
    file, line = finding.place
    last = [
        max(edit.region.last_line for edit in fix.edits)
        for other, fix in ways
        if fix is not None and all(edit.file == file for edit in fix.edits) and (other.place[1] or 0) < (line or 0)
    ]
    return line is not None and any(line <= each for each in last)


def _operator(fix: Fix) -> str:
    """What a loop or a branch became."""
    code = fix.edits[0].replacement
    return next((name for name in ("while_loop", "scan", "cond") if f".{name}(" in code), "tensors")


def _note(finding: Finding, fix: Fix, *, trains: bool) -> Finding:
    rule = ControlFlowRewritten(operator=_operator(fix))
    # NOTE: the variables of these loops include a number, of which torch takes no gradient (seen in 2.13).
    is_lossy = trains and rule.operator == "while_loop"
    confidence = Confidence.CHANGES_BEHAVIOUR if is_lossy else fix.confidence
    shown = dataclasses.replace(fix, description=_REWRITTEN, confidence=confidence)
    return Finding(rule, finding.at, notes=(_NO_GRADIENT,) if is_lossy else (), fixes=(shown,))


def _negated(request: Request) -> Request:
    def negated(tensor: torch.Tensor) -> torch.Tensor:
        return _changed(torch.neg, tensor) if tensor.is_floating_point() else tensor

    args, kwargs = pytree.map_tensors(negated, (request.args, dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)


def _changed(change: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor) -> torch.Tensor:
    try:
        return change(tensor)
    except RuntimeError:
        # NOTE: some dtypes and layouts have no such operator.
        return tensor


def _more(size: int) -> int:
    return size + 2


def _twice(size: int) -> int:
    return 2 * size


def _less(size: int) -> int:
    return max(1, size - 1)


def _again(size: int, before: int) -> torch.Tensor:
    """The places of `size` elements among those before, which begin again after the last one."""
    return torch.arange(size) % before


def _in_order(size: int, before: int) -> torch.Tensor:
    """As `_again`, with the same elements side by side."""
    return torch.arange(size) * before // size


def _resized(request: Request, resize: Callable[[int], int], places: Callable[[int, int], torch.Tensor]) -> Request | None:
    """`request` with another size of every dynamic dim, equal sizes alike; None if the dims do not allow that."""
    dims = request.shapes.dynamic
    sizes = {dim: resize(dim.size) for dim in dims}
    if all(size == dim.size for dim, size in sizes.items()):
        return None
    return _of_sizes(request, sizes, places)


def _of_sizes(request: Request, sizes: Mapping[InputDim, int], places: Callable[[int, int], torch.Tensor]) -> Request | None:
    """`request` with these sizes of its dynamic dims; None if the dims do not allow that."""
    if any(size != dim.size and (dim.kind is Kind.DERIVED or not dim.size or not dim.allows(size)) for dim, size in sizes.items()):
        return None

    def resized(value: Any, index: int) -> Any:
        for dim, size in sizes.items():
            if dim.flat_index == index:
                rows = places(size, dim.size).to(value.device)
                value = _changed(functools.partial(torch.index_select, dim=dim.axis, index=rows), value)
        return value

    changed = {id(leaf.value): resized(leaf.value, index) for index, leaf in enumerate(request.shapes.leaves)}
    args, kwargs = pytree.tree_map(lambda value: changed.get(id(value), value), (request.args, dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)
