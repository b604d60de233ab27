"""The log: everything that one export reported, frozen. Sinks are functions of it."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib

from .finding import Diagnostic
from .flow import GraphText
from .level import Level
from .location import Location
from .options import DiagnosticOptions

PROFILE = "profile.txt"
"""Name of the attachment that tells in which functions the time was spent."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    """What made the log: a name of at most three words, a semantic version, a page about it."""

    name: str
    version: str
    uri: str


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happened and asks for no action: a step, a choice, a time. Never a finding.

    Attributes:
        level: A level of `logging`, such as `logging.INFO`.
        stage: The stage that it belongs to; empty between stages.
        text: What happened, a sentence.
        at: When, in seconds since the epoch.
    """

    level: int
    stage: str
    text: str
    at: float


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the pipeline as it ran: how long in seconds, and whether it came to its end."""

    name: str
    seconds: float
    completed: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Attachment:
    """A text of interest, such as a graph dump; written beside the log when a folder was asked for."""

    name: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the export wrote. `role` is SARIF's (2.1.0, section 3.24.6), such as `resultFile`; `sha256` in hex."""

    path: pathlib.Path
    role: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True)
class Log:
    """What one export reported.

    Attributes:
        tool: What made it.
        subject: Name of the exported model.
        findings: Worst first, then in the order of the stages.
        events: Steps and choices, in order of time.
        stages: The stages that ran, in order.
        attachments: Texts of interest.
        artifacts: The files that were written.
        environment: Names and versions of what the result depends on.
        options: The options in force.
        started: When the export began (UTC), to the millisecond.
        ended: When it ended (UTC), to the millisecond.
        command_line: The command, if there was one.
        graphs: The graphs that steps of the findings stand in, as text.
        places: Places that stand for the whole export, the most telling first, for findings without one of their own.
    """

    tool: Tool
    subject: str
    findings: tuple[Diagnostic, ...]
    events: tuple[Event, ...]
    stages: tuple[Stage, ...]
    attachments: tuple[Attachment, ...]
    artifacts: tuple[Artifact, ...]
    environment: tuple[tuple[str, str], ...]
    options: DiagnosticOptions
    started: datetime.datetime
    ended: datetime.datetime
    command_line: str = ""
    graphs: tuple[GraphText, ...] = ()
    places: tuple[Location, ...] = ()

    @property
    def succeeded(self) -> bool:
        """True if the export has a result."""
        return not any(finding.fails for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 if exported, 1 if findings failed the export."""
        return 0 if self.succeeded else 1

    @property
    def active(self) -> tuple[Diagnostic, ...]:
        """The findings that count: those that no comment in the source accepts, and those that stopped the export."""
        return tuple(finding for finding in self.findings if finding.suppression is None or finding.blocking)

    def count(self, level: Level) -> int:
        """How many active findings have `level`."""
        return sum(finding.level is level for finding in self.active)
