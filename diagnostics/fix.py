"""What a user can do about a finding."""

from __future__ import annotations

import dataclasses
import enum
import textwrap

from .location import Region


class Confidence(enum.Enum):
    """What a fix does to the model's results."""

    SAFE = "safe"
    CHANGES_BEHAVIOUR = "changes behaviour"
    GUESS = "guess"


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """Replaces `region` of `file` with `replacement`, byte for byte."""

    file: str
    region: Region
    replacement: str

    def lines(self) -> tuple[list[str], list[str]]:
        """The whole lines that the edit touches, before and after it."""
        region = self.region
        before = list(region.texts(self.file))
        head = before[0][: region.offset]
        tail = before[-1][region.end_column - 1 :] if region.end_column else ""
        return before, (head + self.replacement + tail).splitlines()

    def as_snippet(self) -> str:
        """The replacement without the indentation of its place."""
        return textwrap.dedent(" " * self.region.offset + self.replacement).strip()


@dataclasses.dataclass(frozen=True, slots=True)
class Fix:
    """One solution: edits that a tool can apply, code for the user to paste, or plain advice.

    Attributes:
        description: What to do, as a sentence.
        confidence: What the fix does to the model's results.
        edits: Edits to apply together.
        snippet: Python code to paste, where no exact edit is possible.
    """

    description: str
    confidence: Confidence
    edits: tuple[Edit, ...] = ()
    snippet: str = ""
