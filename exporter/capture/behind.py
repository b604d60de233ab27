"""What is behind the problems that stopped a capture: further captures go on where it stopped, so that one run lists all problems."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.process import BudgetSpent, Stopped
from onnxplain.request import Request
from onnxplain.rules import ConstraintViolated, ExampleOfSizeOne, FakeKernelMissing, SpecializedDynamicDim, UserCodeRaised
from onnxplain.torch_internals import shape_env

from . import audit
from .attempts import Attempt, Setting
from .audit import Finished
from .explain import dims, eager_failures
from .finding import Finding, headline
from .search import Search
from .strategies import ALL, CaptureStrategy

_EXAMPLE = "with the decisions that the example's data make"
_FORGETFUL = "as if no line before had fixed a dim"
_STATIC = "with static dims"
_DRAFT = 'Later lines may have further problems. The strategy draft looks for them: strategies=["non-strict", "strict", "draft"]'


@dataclasses.dataclass(frozen=True)
class _Way:
    """A capture that may pass the lines that stopped another one.

    Attributes:
        strategy: The strategy.
        request: What it captures.
        assuming: What it assumes, in words.
        setting: What is open meanwhile.
    """

    strategy: CaptureStrategy
    request: Request
    assuming: Sequence[str]
    setting: Setting = contextlib.nullcontext

    @property
    def forgets(self) -> bool:
        """Whether a line that fixes a dim does not fix it for later lines."""
        return self.setting is shape_env.forgetful


class Behind:
    """Looks behind the findings of a search that found no capture.

    Args:
        context: The context.
        search: The search.

    Attributes:
        reached: The capture that came to the model's end under an assumption; None if there is none.
        unseen: Why not everything behind the findings was looked at; empty if it was.
    """

    def __init__(self, context: DiagnosticContext, search: Search) -> None:
        self._context = context
        self._search = search
        self._attempts: list[Attempt] = []
        self.reached: Finished | None = None
        self.unseen = ""

    def findings(self, known: Sequence[Finding]) -> list[Finding]:
        """Further findings that block the export.

        Args:
            known: What stopped the search.
        """
        if (partial := self._search.partial) is not None:
            self._reach(partial)
            way = _Way(ALL["non-strict"], self._search.request, (_FORGETFUL,), shape_env.forgetful)
            made = self._made(way) if _fixed(known) else None
            return [] if made is None else _new(dims.also_frozen(way.request, made.guards, _fixed(known)), known)
        if any(finding.final and not isinstance(finding.rule, FakeKernelMissing) for finding in known):
            self._context.event("What is behind this problem cannot be looked at before it is solved.")
            return []
        found: list[Finding] = []
        for way in self._ways(known):
            if (made := self._made(way)) is None:
                break
            found += _new(self._found(way, made, [*known, *found]), [*known, *found])
            self._reach(made)
            if self.reached is not None:
                return found
        if "draft" not in self._search.request.strategies:
            # NOTE: whoever chose the strategies knows what they leave out, so this is no note of a finding.
            self._context.event(_DRAFT)
            self.unseen = ""
        if any(finding.final and not isinstance(finding.rule, FakeKernelMissing) for finding in found):
            self.unseen = ""
        return found

    def remarks(self, known: Sequence[Finding]) -> Iterator[Finding]:
        """The findings about the capture that came to the model's end that do not block the export.

        Args:
            known: The findings that block it.
        """
        places = {finding.place for finding in known}
        needs_one = any(isinstance(finding.rule, SpecializedDynamicDim) and finding.rule.value == 1 for finding in known)
        for finding in self._remarks():
            follows = needs_one and isinstance(finding.rule, ExampleOfSizeOne)
            if finding.place not in places and not follows:
                yield dataclasses.replace(finding, blocking=False)

    def _remarks(self) -> Iterator[Finding]:
        if self.reached is None:
            for made in self._attempts:
                yield from audit.side_effects_of(made)
            return
        for check in audit.CHECKS:
            try:
                yield from list(check(self.reached))
            except (BudgetSpent, Stopped):
                self._context.event("No time was left to find the lines that change state or draw random numbers.")
            except Exception as error:  # noqa: BLE001  the program holds under an assumption only, so any check may stumble
                self._context.event(f"A check of the captured program failed: {headline(error)}")

    def _reach(self, made: Attempt) -> None:
        if made.program is not None:
            self.reached = Finished(made.request, made.program, made, self._search.model, self._search.runs.budget)

    def _ways(self, known: Sequence[Finding]) -> Iterator[_Way]:
        """The captures to try one after another, until one comes to the model's end."""
        ones = {rule.dim for finding in known if isinstance(rule := finding.rule, SpecializedDynamicDim) and rule.value == 1}
        request = self._search.request
        # NOTE: code for size 1 only runs for that size, so lines behind may fix it as well.
        request = dims.closed(request, [dim for dim in request.shapes.dynamic if dim.name in ones])
        survey = ALL["draft"] if "draft" in request.strategies else ALL["non-strict"]
        example = (_EXAMPLE,) if survey.is_survey else ()
        if all(isinstance(finding.rule, SpecializedDynamicDim | ConstraintViolated) for finding in known):
            yield _Way(ALL["non-strict"], request, (_FORGETFUL,), shape_env.forgetful)
        elif survey.is_survey and not self._search.has_surveyed:
            yield _Way(survey, request, example)
        if request.shapes.dynamic:
            yield _Way(survey, request, (*example, _FORGETFUL), shape_env.forgetful)
            yield _Way(survey, dims.closed(request, request.shapes.dynamic), (*example, _STATIC))

    def _made(self, way: _Way) -> Attempt | None:
        """The attempt; None if there is no time, or if it was stopped."""
        search = self._search
        text = " and ".join(way.assuming)
        if not search.runs.budget.has(search.seconds):
            self.unseen = "Later lines may have further problems: no time was left to look for them."
            return None
        self._context.event(f"A capture looks for further problems, {text}." if text else "A capture looks for further problems.")
        try:
            with way.setting():
                made = search.attempt(way.strategy, way.request, looks_on=True)
        except Stopped as stopped:
            self.unseen = f"Later lines may have further problems: a capture that looks for them was stopped, because {stopped}."
            return None
        made.attributes.undo()
        self.unseen = "" if made.error is None else f"Later lines may have further problems: there, a capture raises {headline(made.error)}"
        made = dataclasses.replace(made, setting=way.setting)
        self._attempts.append(made)
        return made

    def _found(self, way: _Way, made: Attempt, known: Sequence[Finding]) -> list[Finding]:
        found = self._search.found(made, way.request)
        if way.forgets:
            found += dims.each_frozen(way.request, made.guards, _fixed([*known, *found]))
        if made.error is not None and not found and (error := self._search.runs.error()) is not None:
            found.append(eager_failures.finding(way.request, error, self._search.runs))
        return found


def _fixed(findings: Sequence[Finding]) -> list[Finding]:
    # NOTE: torch takes size 1 for any size, so that other lines of such a dim are not known to need it.
    return [each for each in findings if isinstance(each.rule, SpecializedDynamicDim) and each.rule.value != 1]


def _new(found: Sequence[Finding], known: Sequence[Finding]) -> list[Finding]:
    """Those of `found` that are about other lines than `known` ones, or about other dims that their lines fix."""
    told = list(known)
    for finding in found:
        same = [each.rule for each in told if each.place == finding.place]
        fixes_others = isinstance(finding.rule, SpecializedDynamicDim) and finding.rule not in same
        # NOTE: where the example itself fails, the dim only seems to have to be its size.
        fails = isinstance(finding.rule, UserCodeRaised) and all(isinstance(rule, SpecializedDynamicDim) for rule in same)
        if not same or fails or (fixes_others and all(isinstance(rule, SpecializedDynamicDim) for rule in same)):
            told.append(finding)
    return told[len(known) :]
