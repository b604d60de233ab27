"""The context stands beside the pipeline; every stage reports to it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import logging
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from .code_flow import GRAPHS, GraphText, Step
from .diagnostic import Diagnostic, Suppression
from .display import TEXT_LIMIT, described_error, shortened
from .errors import interruption
from .export_errors import ExportFailed
from .fix import Confidence, Fix
from .graph import Graph
from .level import Level
from .location import Location, Region
from .log import KILLED, Artifact, Attachment, Event, Log, Stage, Tool
from .options import DiagnosticOptions
from .own_process import OwnProcess
from .rule import Rule
from .source_text import IGNORE, line_text

_R = TypeVar("_R", bound=Rule)


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """The place of a finding and how the program got there. `onnxplain.source` makes it from nodes, frames and exceptions.

    Attributes:
        location: The innermost line of the user's code, if there is one.
        stack: Python frames that lead to that line, outermost first.
        code_flow: The path from the source line through the graphs.
        related: Other places that explain the finding.
        node: The node of a graph that the finding is about; the context's `draw` takes it.
    """

    location: Location | None = None
    stack: tuple[Location, ...] = ()
    code_flow: tuple[Step, ...] = ()
    related: tuple[Location, ...] = ()
    node: object = None


class StageFailed(Exception):
    """Ends a stage. `DiagnosticContext.fail` and `stop` make it; at the end of the stage it becomes `ExportFailed`."""

    def __init__(self, cause: BaseException | None) -> None:
        super().__init__()
        self.cause = cause


@dataclasses.dataclass(frozen=True)
class Mark:
    """What a context had collected when it made this."""

    findings: Mapping[tuple[object, ...], Diagnostic]
    occurrences: Mapping[tuple[object, ...], Sequence[Location | None]]
    events: int
    stages: int
    attachments: int
    first_cause: BaseException | None


class Watcher(Protocol):
    """Follows an export while it runs. `DiagnosticContext.watcher` names it."""

    def began(self, stage: str) -> None:
        """The export begins a stage."""

    def found(self) -> None:
        """The context has a new finding."""


class DiagnosticContext:
    """Collects what an export reports.

    Args:
        tool: What writes the log.
        subject: Name of the model.
        options: Which findings count, and how much the log records.
        internal_error: Makes the finding for an exception that escapes a stage: `(stage, exception) -> rule`.
        cut_short: Makes the finding for an export that does not come to its end: `(stage, reason) -> rule`.
        locate: Makes the evidence for an exception.
        on_stage: The context calls it with the name of each stage that begins.
        clock: Returns seconds since the epoch.
        command_line: The command, if there is one.
        family: What the model has in common with similar ones; empty if nobody told.
        places: Returns the places that stand for the whole export. The context calls it only for a log with findings.
        draw: Makes the graph around the node that a finding is about. The context calls it once per finding.

    Attributes:
        process: The process that exports. In one that the model forks, the context ends the export.
        watcher: Who follows the export.
        folder: The current folder when the export began; None if it does not exist.
    """

    def __init__(
        self,
        *,
        tool: Tool,
        subject: str,
        options: DiagnosticOptions,
        internal_error: Callable[[str, BaseException], Rule],
        cut_short: Callable[[str, str], Rule],
        locate: Callable[[BaseException], Evidence] = lambda _: Evidence(),
        on_stage: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
        command_line: str = "",
        family: str = "",
        places: Callable[[], tuple[Location, ...]] = tuple,
        draw: Callable[[Any], Graph] | None = None,
    ) -> None:
        options.check_known()
        self.options = options
        self.process = OwnProcess()
        self.subject = subject
        self.environment: dict[str, str] = {}
        self._tool = tool
        self._internal_error = internal_error
        self._cut_short = cut_short
        self.watcher: Watcher | None = None
        self._locate = locate
        self._on_stage = on_stage
        self._clock = clock
        self._command_line = command_line
        self._family = family
        self._places = places
        self._draw = draw
        self._started = clock()
        self.folder = _current_folder()
        self._stage = ""
        self._first_cause: BaseException | None = None
        self._findings: dict[tuple[object, ...], Diagnostic] = {}
        self._occurrences: dict[tuple[object, ...], list[Location | None]] = {}
        self._events: list[Event] = []
        self._stages: list[Stage] = []
        self._attachments: list[Attachment] = []
        self._graphs: dict[str, Callable[[], GraphText]] = {}
        self._artifacts: list[Artifact] = []

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Runs one stage of the pipeline.

        Raises:
            ExportFailed: The stage could not go on: it raised `fail` or `stop`, or another exception escaped it, which the context
                turns into an internal finding.
            Forked: The model has forked this process.
        """
        self.process.check()
        self._stage, started, completed = name, self._clock(), False
        cause: BaseException | None = None
        known = True
        if self._on_stage is not None:
            self._on_stage(name)
        if self.watcher is not None:
            self.watcher.began(name)
        try:
            yield
            self.process.check()
            completed = True
        except StageFailed as stop:
            cause = stop.cause
        except ExportFailed:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  a failed export never has an empty log: every exception becomes a finding
            if (stopped := interruption(error)) is not None:
                raise stopped from None
            cause, known = error, False
            self.report(self._internal_error(name, error), at=self._locate(error), blocking=True, cause=error)
        finally:
            self._stages.append(Stage(name, round(self._clock() - started, 6), completed))
            self._stage = ""
        if not completed:
            # NOTE: the finding of a recognized failure tells everything; a page of torch's traceback would bury it.
            raise ExportFailed(self.log(), cause) from (None if known else cause)

    def report(
        self,
        rule: Rule,
        *,
        at: Evidence | Location | None = None,
        notes: Sequence[str] = (),
        fixes: Sequence[Fix] = (),
        cause: BaseException | None = None,
        blocking: bool = False,
    ) -> None:
        """Adds a finding; the stage goes on. A `blocking` finding leaves the stage without a result, so the stage must end with `stop`."""
        self.process.check()
        level = Level.ERROR if blocking else self.options.level_of(type(rule))
        if level is None:
            self.event(f"The options ignore a finding of {rule.id}.")
            return
        if blocking and self._first_cause is None:
            self._first_cause = cause
        evidence = at if isinstance(at, Evidence) else Evidence(at)
        finding = _finding(rule, level, self._stage, evidence, notes, fixes, cause, blocking=blocking)
        place = None if rule.everywhere or finding.location is None else (finding.location.file, finding.location.line)
        key = (rule, place, finding.suppression is None)
        seen = self._findings.get(key)
        if seen is None and evidence.node is not None and self._draw is not None:
            finding = dataclasses.replace(finding, graph=self._draw(evidence.node))
        self._findings[key] = _fold(seen, finding) if seen else finding
        self._occurrences.setdefault(key, []).append(finding.location)
        if self.watcher is not None and seen is None:
            self.watcher.found()

    def reported(self, rule: type[_R]) -> tuple[_R, ...]:
        """What the findings of a rule say, in the order of their reports."""
        return tuple(finding.rule for finding in self._findings.values() if isinstance(finding.rule, rule))

    def is_blocked_at(self, place: Location | None) -> bool:
        """Whether a blocking finding is at the line of `place`."""
        found = (finding.location for finding in self._findings.values() if finding.blocking)
        return place is not None and any(each is not None and (each.file, each.line) == (place.file, place.line) for each in found)

    def fail(
        self,
        rule: Rule,
        *,
        at: Evidence | Location | None = None,
        notes: Sequence[str] = (),
        fixes: Sequence[Fix] = (),
        cause: BaseException | None = None,
    ) -> StageFailed:
        """Adds the finding that ends the stage: `raise context.fail(...)`."""
        self.report(rule, at=at, notes=notes, fixes=fixes, cause=cause, blocking=True)
        return StageFailed(cause)

    def stop(self, cause: BaseException | None = None) -> StageFailed:
        """Ends the stage after blocking findings: `raise context.stop()`. By default `cause` is that of the first blocking finding."""
        if not any(finding.blocking for finding in self._findings.values()):
            raise AssertionError("stop() without a blocking finding would fail the export with an empty log")
        return StageFailed(cause or self._first_cause)

    @property
    def running(self) -> str:
        """The stage that runs; empty between stages."""
        return self._stage

    def finish(self) -> Log:
        """The log of an export that ran all its stages. Raises `ExportFailed` if a finding fails it nevertheless."""
        log = self.log()
        if not log.succeeded:
            raise ExportFailed(log)
        return log

    def records(self, level: int) -> bool:
        """Whether the log records events of `level`. Ask before work that only an event needs."""
        return level >= self.options.verbosity_level

    def event(self, text: str, level: int = logging.INFO) -> None:
        """Records something that happened and needs no action. `text` gets the period that SARIF wants, if it lacks one."""
        text = shortened(text.strip(), TEXT_LIMIT)
        if level >= self.options.verbosity_level and text:
            self._events.append(Event(level, self._stage, text if text.endswith(".") else f"{text}.", self._clock()))

    def attach(self, name: str, text: Callable[[], str], level: int = logging.DEBUG) -> None:
        """Attaches a text to the log, unless the log has one of that name. Calls `text` only if the verbosity includes `level`."""
        if level >= self.options.verbosity_level and all(each.name != name for each in self._attachments):
            self._attachments.append(Attachment(name, text()))

    def mark(self) -> Mark:
        """What was collected until now, to come back to after an attempt."""
        occurrences = {key: tuple(places) for key, places in self._occurrences.items()}
        counts = len(self._events), len(self._stages), len(self._attachments)
        return Mark(dict(self._findings), occurrences, *counts, self._first_cause)

    def back_to(self, mark: Mark) -> None:
        """Forgets what was collected after `mark`, but for the graphs: those of the next attempt take their places."""
        self._findings = dict(mark.findings)
        self._occurrences = {key: list(places) for key, places in mark.occurrences.items()}
        self._first_cause = mark.first_cause
        del self._events[mark.events :], self._stages[mark.stages :], self._attachments[mark.attachments :]

    def graph(self, name: str, text: Callable[[], GraphText]) -> None:
        """Adds a graph, one of `GRAPHS`. The context calls `text` only for a log with a finding whose path leads through the graph."""
        self._graphs[name] = text

    def wrote(self, path: pathlib.Path, role: str, sha256: str) -> None:
        """Records a file that the export has written."""
        self._artifacts.append(Artifact(path.absolute(), role, path.stat().st_size, sha256))

    def interrupted(self, reason: str, error: BaseException) -> Log:
        """The log of an export that `error` interrupts. It has a finding at the user's line that ran."""
        stopped = [stage.name for stage in self._stages if not stage.completed]
        self.report(self._cut_short(stopped[-1] if stopped else "", reason), at=self._locate(error), blocking=True)
        return self.log(unfinished=reason)

    def log_if_killed(self, stage: str) -> Log:
        """What the log has to tell if nothing follows, because the process ends in `stage`. It has no graphs."""
        log = self.log(unfinished=KILLED, graphs=False)
        places = log.places or self._places()
        finding = _finding(self._cut_short(stage, KILLED), Level.ERROR, stage, Evidence(), blocking=True)
        return dataclasses.replace(
            log,
            findings=(_with_occurrences(finding, [None], places), *log.findings),
            stages=(*log.stages, Stage(stage, 0.0, completed=False)),
            places=places,
        )

    def log(self, *, unfinished: str = "", graphs: bool = True) -> Log:
        """Everything that was reported until now, frozen.

        Args:
            unfinished: As in `Log`.
            graphs: Whether the log has the graphs that findings lead through.
        """
        self.process.check()
        places = self._places() if self._findings else ()
        findings = [_with_occurrences(finding, self._occurrences[key], places) for key, finding in self._findings.items()]
        named = {step.graph for finding in findings for step in finding.code_flow} if graphs else set()
        return Log(
            tool=self._tool,
            subject=self.subject,
            findings=tuple(sorted(findings, key=lambda finding: (not finding.fails, finding.level.rank))),
            events=tuple(self._events),
            stages=tuple(self._stages),
            attachments=tuple(self._attachments),
            artifacts=tuple(self._artifacts),
            environment=tuple(self.environment.items()),
            options=self.options,
            started=_utc(self._started),
            ended=_utc(self._clock()),
            command_line=self._command_line,
            graphs=tuple(self._graphs[name]() for name in GRAPHS if name in self._graphs and name in named),
            places=places,
            folder=self.folder,
            unfinished=unfinished,
            family=self._family,
        )


def _finding(
    rule: Rule,
    level: Level,
    stage: str,
    evidence: Evidence,
    notes: Sequence[str] = (),
    fixes: Sequence[Fix] = (),
    cause: BaseException | None = None,
    *,
    blocking: bool,
) -> Diagnostic:
    return Diagnostic(
        rule=rule,
        level=level,
        stage=stage,
        blocking=blocking,
        location=evidence.location,
        stack=evidence.stack,
        code_flow=evidence.code_flow,
        related=evidence.related,
        notes=tuple(shortened(note, TEXT_LIMIT) for note in notes),
        # NOTE: a finding always names an action. If the reporter gives none, it is the first one on the rule's page.
        fixes=tuple(fixes) or (Fix(rule.page.first_way, Confidence.GUESS),),
        cause=described_error(cause) if cause is not None else "",
        suppression=_suppression(rule, evidence.location),
    )


def _current_folder() -> pathlib.Path | None:
    # NOTE: the model may change it, so the log keeps the one that paths were relative to.
    try:
        return pathlib.Path.cwd()
    except OSError:
        return None


def _fold(seen: Diagnostic, again: Diagnostic) -> Diagnostic:
    if again.blocking and not seen.blocking:
        seen, again = again, seen
    return dataclasses.replace(
        seen,
        notes=tuple(dict.fromkeys((*seen.notes, *again.notes))),
        cause=seen.cause or again.cause,
        graph=seen.graph or again.graph,
    )


def _with_occurrences(finding: Diagnostic, found: Sequence[Location | None], places: Sequence[Location]) -> Diagnostic:
    """`finding` with every place where it was found. A place outside all files becomes that of the model: readers need a line to go to."""
    places_found = (_in_a_file(place, places) for place in found)
    known = tuple(dict.fromkeys(place for place in places_found if place is not None))
    return dataclasses.replace(finding, location=known[0] if known else None, occurrences=known, count=len(found))


def _in_a_file(place: Location | None, places: Sequence[Location]) -> Location | None:
    if (place is not None and place.file) or not places:
        return place
    return dataclasses.replace(places[0], module=place.module if place is not None else "", function="")


def _suppression(rule: Rule, place: Location | None) -> Suppression | None:
    if place is None or place.region is None:
        return None
    for number in range(place.region.line, place.region.last_line + 1):
        found = IGNORE.search(line_text(place.file, number))
        if found and rule.id in re.split(r"[\s,]+", found[1].strip()):
            return Suppression(Location(place.file, Region(number)), found[2].strip())
    return None


def _utc(seconds: float) -> datetime.datetime:
    # NOTE: SARIF records milliseconds (2.1.0, section 3.9). With more, a report made from the log would differ from that of the export.
    return datetime.datetime.fromtimestamp(round(seconds, 3), tz=datetime.timezone.utc)
