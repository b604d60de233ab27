"""Tries one strategy after another until a capture meets the request."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator

import torch

from onnxplain.diagnostics import Confidence, DiagnosticContext, Evidence, Location
from onnxplain.process import Budget, Stopped, Stopwatch, random_numbers_kept
from onnxplain.request import InputDim, Request
from onnxplain.rules import CaptureFailed, ConstraintViolated, DataDependentBranch, DataDependentValue, NumpyUsed, SpecializedDynamicDim
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import config, empty_scans, gradients, pytree, size_conversions, size_texts
from onnxplain.torch_internals.size_texts import Spelling
from onnxplain.torch_internals.symbolic_expressions import divides_to_int

from . import exceptional_sizes, larger_examples
from .attempts import Attempt, Setting, attempt
from .audit import Finished, checks_of_sizes
from .eager import EagerRuns, same_results
from .explain import arguments, assumptions, data_dependence, dims, failures, fake_kernels, narrowing
from .finding import Finding, headline
from .observe.guards import Guard
from .strategies import ALL, CaptureStrategy, as_module, of

_SLOWER = 2.0
"""How many times longer than the first strategy another strategy may take."""
_REWRITES = 2.0
"""How many times as long as the first strategy a rewritten copy takes: it is tried, and then captured."""
_SURVEY = 3.0
"""After how many times the seconds of the first strategy a survey is stopped."""
_PART = 0.25
"""Which part of the seconds of the budget a survey may take in any case."""

_LARGER = 2
"""How many larger examples are tried: a later part of a model may make a size half as large."""
_LIMITS = (ConstraintViolated, SpecializedDynamicDim)
"""What limits dims."""
_ASKING = functools.partial(config.left_alone, config.SIZE_ONE)
"""While it is open, torch asks the example about sizes that it cannot decide about."""


class Search:
    """Tries one strategy after another, and keeps what stopped them.

    Attributes:
        asked: The export as the user asked for it.
        request: The export, with the dims that the model fixes as static dims.
        runs: The eager runs of the model.
        findings: What stopped the strategies; after a success, the findings about its program.
        error: The exception of the first strategy that raised one.
        partial: The first attempt with a program, which does not meet the request.
        seconds: The seconds that the first attempt took.
        has_surveyed: Whether a survey has run.
        model: The model, as a module.
    """

    def __init__(self, context: DiagnosticContext, request: Request, budget: Budget) -> None:
        self._context = context
        self.model = as_module(request.model)
        self._fixed: dict[InputDim, Evidence] = {}
        self._some_open = bool(request.shapes.open)
        self.seconds = 0.0
        self.has_surveyed = False
        self._differentiates = False
        self._previous: Attempt | None = None
        self.asked = self.request = request
        self.runs = EagerRuns(context, request, budget)
        self.findings: list[Finding] = []
        self.error: Exception | None = None
        self.partial: Attempt | None = None

    def finished(self) -> Finished | None:
        """The first capture that meets the request; None if there is none."""
        for strategy in self._strategies():
            if strategy.is_survey:
                self._look_around(strategy)
                if not any(finding.blocking for finding in self.findings):
                    # NOTE: a survey is never the result, even if nothing in it seems to depend on the example's data.
                    self.findings, strategy = [], ALL["non-strict"]
            if not strategy.is_survey and self._is_worthwhile(strategy):
                made, found = self._without_fixed_dims(strategy)
                if made.program is not None and not any(finding.blocking for finding in found):
                    self.findings = found
                    return Finished(self.request, made.program, made, self.model)
                self._keep(made)
                self.findings = _joined(self.findings, found, made)
            if any(finding.final for finding in self.findings):
                break
        return None

    def _strategies(self) -> Iterator[CaptureStrategy]:
        """The strategies of the request; capture below autograd follows a failure of the first where the model computed gradients."""
        for name in self.request.strategies:
            yield of(name)
            if name == "non-strict" and self._differentiates and gradients.can_capture():
                yield ALL["below autograd"]

    def remarks(self, finished: Finished) -> Iterator[Finding]:
        """The findings about the dims of a program, and those of its capture."""
        if self._some_open:
            yield from dims.left_open(finished.request, finished.attempt.guards, finished.program, self._fixed)
        yield from self.findings

    def _keep(self, made: Attempt) -> None:
        self.error = self.error or made.error
        self._differentiates |= made.differentiates
        made.attributes.undo()
        if made.program is not None:
            self.partial = self.partial or made

    def _is_worthwhile(self, strategy: CaptureStrategy) -> bool:
        """Whether to try a strategy. Sizes and data stop all strategies alike, so after such a failure another one must be cheap.

        Enough must remain for a copy in which the lines that stopped the first one are rewritten, which is more likely to succeed.
        """
        alike = (SpecializedDynamicDim, ConstraintViolated, DataDependentBranch, DataDependentValue)
        fixes = [fix for finding in self.findings if finding.blocking for fix in finding.fixes if fix.confidence is Confidence.SAFE]
        rewrites = self.request.control_flow != "report" and any(fix.edits for fix in fixes)
        times = _SLOWER + (_REWRITES if rewrites else 0)
        if not self.findings or not isinstance(self.findings[0].rule, alike) or self.runs.budget.has(times * self.seconds):
            return True
        self._context.event(
            f"The strategy {strategy.name} was not tried: the problem that stopped the first one ({self.seconds:.0f} s) stops it as well."
        )
        return False

    def _look_around(self, strategy: CaptureStrategy) -> None:
        """Adds the findings that only a survey makes, if data stopped the other strategies."""
        if self.findings and not _depend_on_data(self.findings):
            return
        if self.findings and not self.runs.budget.has(self.seconds):
            self._context.event(f"The strategy {strategy.name} was not tried: the capture takes long.")
            return
        stopwatch, self.has_surveyed = Stopwatch(), True
        try:
            made, found = self._without_fixed_dims(strategy)
        except Stopped as stopped:
            self.runs.budget.spend(stopwatch.seconds)
            self._context.event(f"The strategy {strategy.name} was stopped: {stopped}. Later lines may have further problems.")
            return
        self._keep(made)
        if found:
            further = (dataclasses.replace(finding, own_cause=False) for finding in found if not isinstance(finding.rule, CaptureFailed))
            new = list(further) if self.findings else found
            self.findings = _at_distinct_places([*self.findings, *new])

    def _without_fixed_dims(self, strategy: CaptureStrategy) -> tuple[Attempt, list[Finding]]:
        """The attempt with `strategy` and its findings. If the model fixes dims, the attempt is repeated with these dims static."""
        made, found = self._tried(strategy)
        deciding = self._emptiness_decides(made)
        # NOTE: torch divides by sizes of the example.
        divided = isinstance(made.error, ZeroDivisionError)
        at = assumptions.evidence_about(self.request, deciding) if deciding is not None else Evidence(self.request.caller)
        empty = {dim: at for dim in self.request.shapes.open if dim.size == 0 and (divided or deciding is not None)}
        if empty:
            self._fixed |= empty
            self.request = dims.closed(self.request, empty)
            made, found = self._tried(strategy)
        elif deciding is not None:
            return made, [*found, *dims.emptied(self.request, made.guards, deciding)]
        made, found = self._with_sizes_spelled(strategy, made, found)
        strategy, made, found = self._with_sizes_kept(strategy, made, found)
        own = strategy.name not in ALL
        while self._some_open and (known := dims.fixed(self.request, made.guards, made.program, own=own)):
            self._fixed |= known
            self.request = dims.closed(self.request, known)
            strategy, made, found = self._with_sizes_kept(strategy, *self._tried(strategy))
        return made, found

    def _emptiness_decides(self, made: Attempt) -> Guard | None:
        """The decision by which `made` does not compute what the model does for the example, which is empty; None if there is none."""
        unlike = made.guards.unlike_example
        # NOTE: libraries ask whether a cache is empty, and mostly do the same in both cases.
        own = (guard for guard in unlike if locations.is_users(guard.stack[-1].file))
        first = next(own, unlike[0] if unlike and self.runs.baseline is not None else None)
        return None if first is None or made.program is None or self.equals_eager(made.program) else first

    def _with_sizes_spelled(self, strategy: CaptureStrategy, made: Attempt, found: list[Finding]) -> tuple[Attempt, list[Finding]]:
        """An attempt in which texts of sizes, and lookups by sizes, fix them, if the model goes another way with them than without."""
        if not made.spells_sizes or strategy.is_survey or not self.runs.budget.has(2 * self.seconds):
            return made, found
        self._context.event("The model makes texts of sizes or looks them up; another capture tells whether these decide what it computes.")
        if made.program is not None:
            with size_texts.spelled(Spelling.EXAMPLE):
                again = self.attempt(strategy, self.request)
            if again.program is not None and str(again.program.graph) == str(made.program.graph):
                return made, found
        setting = functools.partial(size_texts.spelled, Spelling.FIXED)
        with setting():
            again, left = self._tried(strategy)
        again = dataclasses.replace(again, setting=setting)
        fails_alike = made.error is not None and again.error is not None and headline(again.error) == headline(made.error)
        return (made, found) if fails_alike else (again, left)

    def _with_sizes_kept(
        self, strategy: CaptureStrategy, made: Attempt, found: list[Finding]
    ) -> tuple[CaptureStrategy, Attempt, list[Finding]]:
        """An attempt for which `int(...)`, `float(...)` and `list(range(...))` fix no sizes, if they do: with others, or by TorchDynamo."""
        places = self._conversions(made, found) if strategy.name == "non-strict" else []
        if not places:
            return strategy, made, found
        rows = {place.file for place in places if syntax.makes_row(place)}
        files = {place.file: (*syntax.NUMBERS, *(syntax.ROWS if place.file in rows else ())) for place in places}
        names = {file: [name for name in kinds if syntax.is_only_called(file, name)] for file, kinds in files.items()}
        ways: list[tuple[CaptureStrategy, Setting]] = [(ALL["strict"], contextlib.nullcontext)]
        if any(names.values()):
            ways.insert(0, (strategy, functools.partial(size_conversions.kept, self.model, names)))
        for other, setting in ways:
            if other.name not in self.request.strategies or not self.runs.budget.has(_SLOWER * self.seconds):
                break
            self._context.event(f"Numbers made of sizes fix them; the strategy {other.name} tries to keep them symbolic.")
            with setting():
                again, left = self._tried(other)
            again = dataclasses.replace(again, setting=setting)
            fails = again.program is None or any(finding.blocking for finding in left)
            if not fails and len(self._conversions(again, left)) < len(places):
                return other, again, left
        return strategy, made, found

    def _conversions(self, made: Attempt, found: list[Finding]) -> list[Location]:
        """The places that fix or limit sizes because they make Python numbers, or lists of these, of them."""
        at = [finding.at.location for finding in found if isinstance(finding.rule, SpecializedDynamicDim | ConstraintViolated)]
        asking = {guard.stack[-1] for guard in made.guards.made if guard.stack}
        # NOTE: what follows takes longer, and few models make such numbers.
        if self._some_open and made.program is not None and any(map(syntax.makes_number, asking)):
            fixed = dims.fixed(self.request, made.guards, made.program, own=False)
            at += [finding.at.location for finding in dims.left_open(self.request, made.guards, made.program, fixed)]
        return [place for place in dict.fromkeys(at) if place is not None and (syntax.makes_number(place) or syntax.makes_row(place))]

    def _tried(self, strategy: CaptureStrategy) -> tuple[Attempt, list[Finding]]:
        """One attempt with `strategy` and its findings; a second one if that helps."""
        made, found = self._tried_with_example(strategy)
        return self._with_exceptions(made, found) or (made, found)

    def _tried_with_example(self, strategy: CaptureStrategy) -> tuple[Attempt, list[Finding]]:
        """As `_tried`: a second attempt if a larger example, or narrower dims that torch asks for, help."""
        made, found = self._held_for_example(strategy)
        larger = larger_examples.without_ones(self.request, found)
        if larger is not None:
            self._context.event("A dynamic dim has size 1 in the example; another capture takes size 2.")
            again = self.attempt(strategy, larger)
            left = self.found(again)
            if again.program is not None and not any(finding.blocking for finding in left) and self.equals_eager(again.program):
                return self._with_larger_sizes(again, left) or (again, left)
        if (by_larger := self._with_larger_sizes(made, found)) is not None:
            return by_larger
        if (by_example := self._with_sizes_of_example(made, found)) is not None:
            return by_example
        narrowed = narrowing.narrowed(self.request, made.error, made.guards)
        known = [finding for finding in found if not (narrowing.unsolved(made.error) and isinstance(finding.rule, CaptureFailed))]
        if narrowed is None or not all(finding.negligible or isinstance(finding.rule, ConstraintViolated) for finding in known):
            return made, found
        self._context.event("torch.export asks for narrower dynamic_shapes.")
        again = self.attempt(strategy, narrowed)
        left = self.found(again)
        if again.program is None or any(finding.blocking for finding in left) or again.guards.contradict(narrowed.shapes.dims):
            return made, found
        # NOTE: the rule's level decides whether a promise that the model cannot keep fails the export.
        known = [finding for finding in known if not finding.negligible] or list(dims.made_equal(self.request, again.guards))
        told = [dataclasses.replace(finding, blocking=False) for finding in known]
        # NOTE: to torch, a check that the narrower dims imply is always true.
        return again, _at_distinct_places([*told, *left, *checks_of_sizes(made.guards)])

    def _held_for_example(self, strategy: CaptureStrategy) -> tuple[Attempt, list[Finding]]:
        """One attempt with `strategy` and its findings; a second one that asks the example, if the first one does not hold for it."""
        made = self.attempt(strategy, self.request)
        found = self.found(made)
        if made.program is None:
            return made, found
        # NOTE: the program may be right for other sizes, but the model refuses the example, or catches that an operator does; or else an
        # operator drops a dim whose computed size is 1 for the example.
        refused = made.guards.contradict(self.request.shapes.dims)
        if not refused and not any(finding.blocking and isinstance(finding.rule, ConstraintViolated) for finding in found):
            return made, found
        self._context.event("The capture does not hold for the example; another one asks the example.")
        with _ASKING():
            again = dataclasses.replace(self.attempt(strategy, self.request), setting=_ASKING)
        left = self.found(again)
        return (again, left) if refused or not any(finding.blocking for finding in left) else (made, found)

    def _with_larger_sizes(self, made: Attempt, found: list[Finding]) -> tuple[Attempt, list[Finding]] | None:
        """An attempt for a larger example, if computed sizes of 1 seem to limit the dims; None if it has as many limits."""
        limits = sum(isinstance(finding.rule, _LIMITS) for finding in found)
        others = [finding for finding in found if finding.blocking and not isinstance(finding.rule, (*_LIMITS, CaptureFailed))]
        again = made
        for _ in range(_LARGER if limits and not others else 0):
            larger = larger_examples.without_computed_ones(again.request, again.guards)
            if larger is None or not (self.runs.budget.is_open and self.runs.budget.has(self.seconds)):
                break
            self._context.event("Computed sizes are 1 for the example and limit the dims; another capture takes a larger example.")
            again = self.attempt(made.strategy, larger)
            allowing = larger_examples.with_ones_allowed(again, self.request)
            left = self.found(allowing)
            fewer = sum(isinstance(finding.rule, _LIMITS) for finding in left) < limits
            if again.program is not None and fewer and not any(finding.blocking for finding in left):
                return (allowing, left) if self.equals_eager(again.program) else None
        return None

    def _with_sizes_of_example(self, made: Attempt, found: list[Finding]) -> tuple[Attempt, list[Finding]] | None:
        """An attempt in which the example tells torch which computed sizes are 1, where it could not decide; None if it is no help.

        For example, it cannot know whether n // m is 1 for a mask of n and a batch of m, and so whether the mask is broadcast.
        """
        serious = [finding.rule for finding in found if not finding.negligible]
        undecided = bool(serious) and all(isinstance(rule, CaptureFailed | SpecializedDynamicDim) for rule in serious)
        divides = any(divides_to_int(guard.relation) for guard in made.guards.made)
        if not (undecided and divides and made.strategy.name == "non-strict" and self.runs.budget.has(self.seconds)):
            return None
        self._context.event("In another capture, the example tells which sizes are 1.")
        larger = larger_examples.doubled(self.request)
        with _ASKING():
            again = self.attempt(made.strategy, larger or self.request)
        left = self.found(again)
        if again.program is None or any(finding.blocking for finding in left):
            return None
        return (dataclasses.replace(again, setting=_ASKING), left) if larger is None or self.equals_eager(again.program) else None

    def _with_exceptions(self, made: Attempt, found: list[Finding]) -> tuple[Attempt, list[Finding]] | None:
        """An attempt that is right for sizes that the model treats as exceptions as well; None if there is none.

        For example, a model pads to a multiple unless the size is one, and the way that pads is right for multiples as well.
        """
        limits = self._limits(made, found)
        if not limits or any(finding.blocking for finding in found) or made.program is None or not self.runs.budget.is_open:
            return None
        again = made
        if (other := exceptional_sizes.without_multiples(self.request, made.guards)) is not None:
            if not self.runs.budget.has(self.seconds):
                return None
            self._context.event("The model has separate code for multiples, such as the example; another capture takes another example.")
            again = self.attempt(made.strategy, other)
            if (narrowed := narrowing.narrowed(other, again.error, again.guards)) is not None:
                again = self.attempt(made.strategy, narrowed)
        allowing, exceptions = exceptional_sizes.with_exceptions_allowed(again, self.request)
        if again.program is None or not exceptions:
            return None
        left = self.found(allowing)
        if any(finding.blocking for finding in left) or len(self._limits(allowing, left)) >= len(limits):
            return None
        again.attributes.undo()
        comparing = Budget(runs=len(exceptions))
        runs = [EagerRuns(self._context, each, comparing) for each in exceptions]
        # NOTE: a size that the model refuses is no exception.
        same = [self.equals_eager(again.program, each) for each in runs if each.baseline is None or each.baseline.error is None]
        self._context.event(f"The way for all other sizes equals the model for {sum(same)} of {len(same)} certain sizes.")
        return (allowing, left) if same and all(same) else None

    def _limits(self, made: Attempt, found: list[Finding]) -> list[Finding]:
        """What limits dims, among them those that may be dynamic."""
        open_ = dims.left_open(self.request, made.guards, made.program, {}) if self._some_open and made.program is not None else ()
        return [finding for finding in (*found, *open_) if isinstance(finding.rule, _LIMITS)]

    def equals_eager(self, program: torch.export.ExportedProgram, runs: EagerRuns | None = None) -> bool:
        """Whether `program`, captured as for other sizes, computes the same as the model for the example, or for that of `runs`."""
        runs = runs or self.runs
        before = runs.baseline
        if before is None or before.error is not None:
            return False
        args, kwargs = pytree.map_tensors(torch.clone, (runs.request.args, dict(runs.request.kwargs)))
        try:
            # NOTE: as the model ran.
            with torch.no_grad(), random_numbers_kept(seed=0), empty_scans.allowed():
                after = larger_examples.without_checks(program)(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  a program for larger sizes may fail in any way
            self._context.event(f"That capture does not run with the example: {headline(error)}")
            return False
        return same_results(before.result, after)

    @property
    def most(self) -> float:
        """The seconds after which a survey, or a capture that only looks for further problems, is stopped."""
        return max(_PART * self.runs.budget.seconds, _SURVEY * self.seconds)

    def attempt(self, strategy: CaptureStrategy, request: Request, *, looks_on: bool = False) -> Attempt:
        """One capture of the model, which counts for the budget.

        Args:
            strategy: The strategy.
            request: What to capture.
            looks_on: Whether it only looks for further problems.

        Raises:
            Stopped: It took too long.
        """
        # NOTE: a survey runs loops that data ends as often as the example's data say.
        most = self.most if looks_on or (strategy.is_survey and self.findings) else math.inf
        if self._previous is not None:
            # NOTE: what the model cached during the last one, such as a table of positions, has no data.
            self._previous.attributes.undo()
        made = self._previous = attempt(self._context, strategy, self.model, request, most)
        if not self.seconds:
            self.seconds = made.seconds
            self.runs.budget.grow(made.seconds)
        elif self.findings:
            self.runs.budget.spend(made.seconds)
        return made

    def found(self, made: Attempt, request: Request | None = None) -> list[Finding]:
        """The findings about an attempt. None of them is blocking only if its program meets `request`, by default that of the search."""
        request = request or self.request
        found = [*data_dependence.assumptions(request, made.guards, self.runs), *fake_kernels.inferred(request, made.guards, self.runs)]
        if made.error is not None and not self.findings:
            found += failures.explain(request, made.strategy.name, made.error, made.guards, self.runs)
        elif made.error is not None:
            found += failures.recognised(request, made.error, made.guards, self.runs)
        if made.program is not None:
            found += dims.undelivered(request, made.guards, made.program)
            found += failures.lost(request, made.program)
            found += failures.of_mixed_dtypes(request, made.program, self.runs)
            # NOTE: a strategy of the user may make constants of any inputs.
            found += arguments.unsupported(request) if made.strategy.name in ALL else ()
        return found


def _joined(findings: list[Finding], found: list[Finding], made: Attempt) -> list[Finding]:
    """One finding for each cause: that of the first strategy, which has the most precise line."""
    if not findings:
        return _at_distinct_places(found)
    if isinstance(findings[0].rule, CaptureFailed) and made.error is not None:
        note = f"The strategy {made.strategy.name} also failed: {headline(made.error)}"
        return [dataclasses.replace(findings[0], notes=(*findings[0].notes, note)), *findings[1:]]
    return findings


def _at_distinct_places(findings: Iterable[Finding]) -> list[Finding]:
    first: dict[object, Finding] = {}
    for finding in findings:
        # NOTE: one line may freeze several dims.
        key = finding.place if _depend_on_data([finding]) else (finding.place, finding.rule)
        first.setdefault(key, finding)
    return list(first.values())


def _depend_on_data(findings: list[Finding]) -> bool:
    return any(isinstance(finding.rule, DataDependentBranch | DataDependentValue | NumpyUsed) for finding in findings)
