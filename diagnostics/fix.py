"""What a user can do about a finding."""

from __future__ import annotations

import dataclasses
import enum

from .location import Region


class Confidence(enum.Enum):
    """What applying a fix does to the model's results."""

    SAFE = "safe"
    CHANGES_BEHAVIOUR = "changes behaviour"
    GUESS = "guess"


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """Replaces `region` of `file` by `replacement`, byte for byte."""

    file: str
    region: Region
    replacement: str


@dataclasses.dataclass(frozen=True, slots=True)
class Fix:
    """One way out: edits that a tool can apply, or code for the user to paste, or just advice.

    Attributes:
        description: What to do, a sentence.
        confidence: What it does to the model's results.
        edits: Edits to apply together.
        snippet: Python code to paste where no edit is exact enough.
    """

    description: str
    confidence: Confidence
    edits: tuple[Edit, ...] = ()
    snippet: str = ""
