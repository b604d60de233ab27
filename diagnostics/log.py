"""The log: everything that one export reported, frozen. Sinks are functions of it."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
from collections.abc import Callable, Iterator
from typing import ClassVar

from .code_flow import GraphText
from .diagnostic import Diagnostic
from .display import visible
from .level import Level
from .location import Location
from .options import DiagnosticOptions

URI = "https://github.com/onnxplain/onnxplain"
"""The project's page, which logs refer to."""

PROFILE = "profile.txt"
"""Name of the attachment that tells where the time of the export went, by stage and by line. A log has it if a profile was asked for."""

MEMORY = "memory.txt"
"""Name of the attachment that estimates where the memory of the exported model goes. A log has it if a report was asked for."""

DIFFERENCES = "differences.csv"
"""Name of the attachment that tells how far the exported model is from eager PyTorch behind each operator, if an output differs."""

PICTURE, CHART = "model.svg", "model.mmd"
"""Names of the attachments that show the exported model, for a page and for markdown. A log has one of them if a report was asked for."""

PREPARED_GRAPH = "prepared-graph.txt"
"""Name of the attachment with the program after the passes, which a log has at `logging.DEBUG`."""

REPRO = "repro.py"
"""Name of the attachment with a script that fails like the first failing finding. `onnxplain triage` adds it to logs for its page."""

ATTACHMENTS = (PROFILE, MEMORY, DIFFERENCES, PICTURE, CHART, PREPARED_GRAPH)
"""Names of the attachments that an export makes."""

KILLED = "its process was killed, still runs, or could not replace this log"
"""Why a log that is not the last one of its export is unfinished."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    """What wrote the log: a name of at most three words, a semantic version, the address of its page."""

    name: str
    version: str
    uri: str


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happened and needs no action: a step, a choice, a time. Never a finding.

    Attributes:
        level: A level of `logging`, such as `logging.INFO`.
        stage: The stage in which it happened; empty between stages.
        text: What happened, as a sentence.
        at: When, in seconds since the epoch.
    """

    level: int
    stage: str
    text: str
    at: float


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the pipeline: its name, how many seconds it ran, and whether it completed."""

    name: str
    seconds: float
    completed: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Attachment:
    """A text beside the findings, such as a graph dump. The export writes it to `artifacts_dir`, if given."""

    name: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the export wrote: its role in SARIF (2.1.0, section 3.24.6) such as `resultFile`, its size in bytes, its hash in hex."""

    path: pathlib.Path
    role: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True)
class Log:
    """What one export reported.

    Attributes:
        tool: What wrote it.
        subject: Name of the exported model.
        findings: Worst first, then in the order of the stages.
        events: Steps and choices, in order of time.
        stages: The stages that ran, in order.
        attachments: Texts beside the findings.
        artifacts: The files that the export wrote.
        environment: Names and versions of the software that the result depends on.
        options: The options in force.
        started: When the export began (UTC), to the millisecond.
        ended: When it ended (UTC), to the millisecond.
        command_line: The command, if there was one.
        graphs: The graphs that the findings' steps point to, as text.
        places: Places that stand for the whole export, the most telling first. A finding without a place gets the first.
        folder: The current folder when the export began; None if it does not exist.
        unfinished: Why the export did not come to its end: `KILLED`, or what interrupted it, such as `SIGTERM`; empty if it did.
        family: What the model has in common with similar ones, such as the family of its architecture; empty if nobody told.
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
    folder: pathlib.Path | None = None
    unfinished: str = ""
    family: str = ""

    # NOTE: `in_notebooks` sets them, because what they call reads logs.
    _repr_html_: ClassVar[Callable[[Log], str]]
    _repr_markdown_: ClassVar[Callable[[Log], str]]

    @property
    def succeeded(self) -> bool:
        """True if the export has a result."""
        return not self.unfinished and not any(finding.fails for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 if the export succeeded, 1 if findings failed it."""
        return 0 if self.succeeded else 1

    @property
    def active(self) -> tuple[Diagnostic, ...]:
        """The findings that count: those that no comment in the source suppresses, and those that stopped the export."""
        return tuple(finding for finding in self.findings if finding.suppression is None or finding.blocking)

    def files(self) -> Iterator[str]:
        """The files that the log speaks of: sources and outputs. A file may come several times."""
        for finding in self.findings:
            for place in (finding.location, *finding.occurrences, *finding.stack, *finding.related):
                if place is not None and place.file:
                    yield place.file
            yield from (edit.file for fix in finding.fixes for edit in fix.edits)
        yield from (str(artifact.path) for artifact in self.artifacts)

    def count(self, level: Level) -> int:
        """The number of active findings of `level`."""
        return sum(finding.level is level for finding in self.active)

    @property
    def verdict(self) -> str:
        """The outcome of the export: `Exported Net in 2.3 s`, `The export of Net failed in capture`, or `... was cut short in capture`."""
        if self.succeeded:
            return f"Exported {self.subject} in {(self.ended - self.started).total_seconds():.1f} s"
        stopped = [stage.name for stage in self.stages if not stage.completed]
        ended = "was cut short" if self.unfinished else "failed"
        return f"The export of {self.subject} {ended}{f' in {stopped[-1]}' if stopped else ''}"

    @property
    def summary(self) -> str:
        """The number of findings of each level: `2 errors, 1 warning.`."""
        counts = [(self.count(level), level.value) for level in Level]
        told = ", ".join(f"{count} {name}{'s' if count != 1 else ''}" for count, name in counts if count)
        suppressed = len(self.findings) - len(self.active)
        if suppressed:
            told = f"{told or 'no findings'} ({suppressed} suppressed in the source)"
        return f"{told or 'no findings'}."

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.findings), visible(f"{self.verdict}: {self.summary}")])
