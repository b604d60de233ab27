"""A finding: one rule, at one place, with all that a reader needs to act on it."""

from __future__ import annotations

import dataclasses

from .fix import Fix
from .flow import Step
from .graph import Graph
from .level import Level
from .location import Location
from .rule import Recorded, Rule

SAME = "The same finding."
"""What a SARIF log says of the other places of a finding, to tell them from the places that explain it."""

UNLINKED = "]\u2060("
"""What `](` in a message becomes in a SARIF log, by a word joiner: readers would make a link of it, and know no way to escape it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Suppression:
    """A finding that the user accepted in the source. It stays in the log and counts nowhere."""

    comment: Location
    justification: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding. Made by `DiagnosticContext.report` and `fail`, and by `read` from a log.

    Attributes:
        rule: The rule's instance: its fields are the message's arguments. In a log that was read, what the log tells of it.
        level: The level after overrides and `warnings_as_errors`.
        stage: Name of the stage that found it.
        blocking: True if the export could not go on because of it.
        location: The user's innermost line, if there is one.
        occurrences: Every place where it was found, `location` first, each once; more than one after folding.
        count: How often it was found, at these places or at none.
        stack: Python frames that lead there, outermost first.
        code_flow: The way from the source line through the graphs, in order.
        related: Other places that explain it; each says how.
        notes: Further facts, a sentence each.
        fixes: Ways out, most likely first.
        cause: The text of the exception behind it, in full.
        graph: The graph around the node that it is about, where there is one.
        suppression: Set when a comment in the source accepts it.
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

    @property
    def message(self) -> str:
        """The rule's message with its arguments."""
        return str(self.rule)

    def __str__(self) -> str:
        from .text import plain

        return plain(self)

    @property
    def fails(self) -> bool:
        """True if the export fails because of this finding."""
        return self.blocking or (self.level is Level.ERROR and self.suppression is None)
