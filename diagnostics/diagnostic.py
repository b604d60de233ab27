"""A finding: one rule at one place, with everything that a reader needs to act on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from .code_flow import Step
from .display import Span, describe, excerpt, visible
from .fix import Fix
from .graph import Graph
from .level import Level
from .location import Location
from .rule import Recorded, Rule

_PLACE_LIMIT = 5
_STACK_LIMIT = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Suppression:
    """A comment in the source that accepts a finding. The finding stays in the log but counts nowhere."""

    comment: Location
    justification: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding. `DiagnosticContext.report` and `fail` make it; `read_log` restores it from a log.

    Attributes:
        rule: The rule's instance, whose fields are the message's arguments. In a restored log, what the log tells about the rule.
        level: The level after overrides and `warnings_as_errors`.
        stage: Name of the stage that found it.
        blocking: True if the export could not go on because of it.
        location: The innermost line of the user's code, if there is one.
        occurrences: Every place where it was found, `location` first, each once; folding makes more than one.
        count: How often it was found, at these places or at none.
        stack: Python frames that lead to `location`, outermost first.
        code_flow: The path from the source line through the graphs, in order.
        related: Other places that explain it; each says how.
        notes: Further facts, one sentence each.
        fixes: Solutions, most likely first.
        cause: The full text of the exception behind it.
        graph: The graph around the node that it is about, if there is one.
        suppression: The comment that accepts it, if there is one.
    """

    rule: Rule | Recorded
    level: Level
    stage: str
    blocking: bool = False
    location: Location | None = None
    occurrences: tuple[Location, ...] = ()
    count: int = 1
    stack: tuple[Location, ...] = ()
    code_flow: tuple[Step, ...] = ()
    related: tuple[Location, ...] = ()
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    cause: str = ""
    graph: Graph | None = None
    suppression: Suppression | None = None

    # NOTE: `in_notebooks` sets them, because what they call reads findings.
    _repr_html_: ClassVar[Callable[[Diagnostic], str]]
    _repr_markdown_: ClassVar[Callable[[Diagnostic], str]]

    @property
    def message(self) -> str:
        """The rule's message with its arguments."""
        return str(self.rule)

    @property
    def fails(self) -> bool:
        """True if the export fails because of this finding."""
        return self.blocking or (self.level is Level.ERROR and self.suppression is None)

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self.lines())

    def lines(self) -> Iterator[list[Span]]:
        """The finding as lines of spans: headline, place, source excerpt, other places, callers, notes, fixes."""
        for line in self._lines():
            yield [(visible(text), role) for text, role in line]

    def _lines(self) -> Iterator[list[Span]]:
        level = self.level.value
        yield [(f"{level}[{self.rule.id}]", level), (f": {self.message}", "headline")]
        if self.location:
            yield from excerpt(self.location, level)
        yield from _places("also", self.occurrences[1:])
        yield from _places("see", self.related)
        for frame in self._callers():
            yield _labelled("called from", describe(frame))
        for note in self.notes:
            yield from _block("note", note)
        for fix in self.fixes:
            yield from _fix(fix)
        if self.suppression and not self.blocking:
            yield _labelled("suppressed", self.suppression.justification or "by a comment in the source")

    def _callers(self) -> list[Location]:
        """The frames above the finding's line, innermost first."""
        frames = [frame for frame in reversed(self.stack) if not _same_line(frame, self.location)]
        return frames[:_STACK_LIMIT]


def _same_line(frame: Location, place: Location | None) -> bool:
    return place is not None and (frame.file, frame.line) == (place.file, place.line)


def _places(label: str, places: Sequence[Location]) -> Iterator[list[Span]]:
    for place in places[:_PLACE_LIMIT]:
        yield _labelled(label, f"{place.message}: {describe(place)}" if place.message else describe(place))
    if len(places) > _PLACE_LIMIT:
        yield _labelled(label, f"{len(places) - _PLACE_LIMIT} more places")


def _fix(fix: Fix) -> Iterator[list[Span]]:
    yield _labelled(f"fix ({fix.confidence.value})", fix.description)
    for line in fix.snippet.splitlines():
        yield [("   |   ", "gutter"), (line, "code")]
    for edit in () if fix.snippet else fix.edits:
        before, after = edit.lines()
        yield from ([("   - ", "removed"), (line, "code")] for line in before)
        yield from ([("   + ", "added"), (line, "code")] for line in after)


def _block(label: str, text: str) -> Iterator[list[Span]]:
    first, *rest = text.splitlines() or [""]
    yield _labelled(label, first)
    for line in rest:
        yield [("   |   ", "gutter"), (line, "")]


def _labelled(label: str, text: str) -> list[Span]:
    return [("   = ", "gutter"), (f"{label}: ", "label"), (text, "")]
