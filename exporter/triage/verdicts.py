"""What became of a model, read from its log. A process that left no complete log gets one here."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import itertools
import json
import pathlib
import re
import signal
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from onnxplain.diagnostics import (
    URI,
    Confidence,
    DiagnosticContext,
    Evidence,
    ExportFailed,
    Fix,
    Location,
    Log,
    Region,
    Rule,
    Tool,
    UnreadableLog,
    integer,
    opened_sarif,
    present_results,
    read_log,
    shared_cause,
    string,
)
from onnxplain.rules import ExportCutShort, InternalError, TargetNotLoaded, WorkerEnded

from .jobs import Ended, Job, Limits

Outcome = Literal["exported", "failed", "not loaded", "crashed", "out of time", "out of memory"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_BY_CAUSE: Mapping[str, Outcome] = {"the time limit": "out of time", "the memory limit": "out of memory"}
_WAYS_OUT: Mapping[str, str] = {
    "the time limit": "Look at the line that ran: it may never end. If it does end, raise `--time-limit`.",
    "the memory limit": "Raise `--memory-limit` or lower `--jobs`, or build the model in `onnxplain.enable_fake_mode()`.",
}
_AFTER_A_CRASH = "Read the file beside the log that ends with `.txt`: what the process printed, and after a crash its stack."
_NAME = "onnxplain/v1"
_NUMBER = re.compile(r"\{(\d+)\}")
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)', re.MULTILINE)
_HOME = re.compile(r".*/(site-packages|dist-packages|python3\.\d+)/|.*/")
"""The folders of a file: those above its package, or all above a file of the user."""
_END_OF_OUTPUT = 2**18
"""Bytes at the end of the output that hold the stack."""


@dataclasses.dataclass(frozen=True)
class LoggedFinding:
    """A finding of a model's log.

    Attributes:
        rule: The rule's id.
        title: The rule's name.
        level: Its level.
        fails: Whether the export failed because of it.
        fingerprint: What recognizes it in another log of the model.
        message: Its message.
        cause: What findings of other models with the same cause share: an operator, a line, or what ended the process.
    """

    rule: str
    title: str
    level: str
    fails: bool
    fingerprint: str
    message: str
    cause: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a model.

    Attributes:
        name: Its name.
        outcome: Whether it was exported, and if not, how its export ended.
        seconds: How long its process ran.
        memory: The most memory that it used, in bytes; 0 if unknown.
        weights: The number of its weights; 0 if unknown.
        findings: The findings of its log that no comment suppresses.
        log: The log.
    """

    name: str
    outcome: Outcome
    seconds: float
    memory: int
    weights: int
    findings: tuple[LoggedFinding, ...]
    log: pathlib.Path


def conclude(job: Job, ended: Ended, limits: Limits, command_line: str) -> Verdict:
    """What became of a model whose process has ended. Without a complete log, it writes one that says how the process ended."""
    try:
        with opened_sarif(job.files.log) as document:
            complete = "onnxplain/unfinished" not in document["runs"][0]["properties"]
    except UnreadableLog:
        complete = False
    if not complete:
        _write_ended(job, ended, limits, command_line)
    with opened_sarif(job.files.log) as document:
        run = document["runs"][0]
        # NOTE: a finding that ends an export is an error, which no comment suppresses.
        findings = tuple(_finding(run, result) for result in present_results(run) if not result.get("suppressions"))
        succeeded = run["invocations"][0]["executionSuccessful"] is True
    rules = {each.rule for each in findings if each.fails}
    outcome: Outcome = "exported" if succeeded else "not loaded" if TargetNotLoaded.id in rules else "failed"
    if not complete:
        outcome = _BY_CAUSE.get(ended.cause, "crashed")
    return Verdict(ended.name, outcome, ended.seconds, ended.memory, _weights(job.files.facts), findings, job.files.log)


def not_loaded(job: Job, error: str, cause: BaseException, place: Evidence, command_line: str) -> None:
    """Writes the log of a model that could not be loaded."""
    context = _context(job, command_line)
    with contextlib.suppress(ExportFailed), context.stage("load"):
        raise context.fail(TargetNotLoaded(error=error), at=place, cause=cause)
    _write(context.log(), job)


def _write_ended(job: Job, ended: Ended, limits: Limits, command_line: str) -> None:
    """Writes the log of a model whose process has ended before it wrote the whole log. It tells what the journal holds."""
    context = _context(job, command_line)
    lines = _lines(job.files.output) if ended.cause in ("signal", "the time limit") else []
    ran = [line for line in lines if _users(line)]
    stage, place, notes = "load", Evidence(ran[0], tuple(reversed(ran))) if ran else Evidence(), [_used(ended, limits)]
    if (journal := _journal(job.files.log)) is not None:
        context.environment.update(journal.environment)
        stage = next((each.name for each in reversed(journal.stages) if not each.completed), "capture")
        for finding in journal.findings:
            if finding.rule.id == ExportCutShort.id:
                place = Evidence(finding.location, finding.stack) if finding.stack or not ran else place
            else:
                notes.append(f"Before, the export had found {finding.rule.id}: {finding.message}")
    with contextlib.suppress(ExportFailed), context.stage(stage):
        fix = Fix(_WAYS_OUT.get(ended.cause, _AFTER_A_CRASH), Confidence.GUESS)
        raise context.fail(WorkerEnded(stage=stage, cause=_cause(ended, lines)), at=place, notes=notes, fixes=[fix])
    _write(context.log(), job)


def _write(log: Log, job: Job) -> None:
    # NOTE: the help of the command needs none of its libraries.
    from onnxplain.diagnostics import sarif

    sarif.write(log, job.files.log, profile=job.model.options.sarif_profile)


def _journal(log: pathlib.Path) -> Log | None:
    with contextlib.suppress(UnreadableLog):
        return read_log(log)
    return None


def _cause(ended: Ended, lines: Sequence[Location]) -> str:
    """What ended a process. After a signal with the innermost function that is not torch's, whose functions call all others."""
    if ended.cause != "signal":
        return f"exit code {ended.number}" if ended.cause == "exit" else ended.cause
    try:
        name = signal.Signals(ended.number).name
    except ValueError:
        name = f"signal {ended.number}"
    told = [(_HOME.sub("", line.file, count=1), line.function) for line in lines]
    others = [(file, function) for file, function in told if not file.startswith(("torch/", "onnxplain/"))]
    return next((f"{name} in {function} of {file}" for file, function in (*others, *told)), name)


def _lines(output: pathlib.Path) -> list[Location]:
    """The lines of Python that ran when a signal ended a process, innermost first, as the faulthandler tells them in the output."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - _END_OF_OUTPUT))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    stack = f"\n{text}".rpartition("\nCurrent thread ")[2].partition("\n\n")[0] if "Current thread " in text else ""
    lines = (Location(found["file"], Region(int(found["line"])), found["function"]) for found in _FRAME.finditer(stack))
    # NOTE: further out, the lines are those of the command and of what has called it.
    return list(itertools.takewhile(lambda line: not _HOME.sub("", line.file, count=1).startswith("onnxplain/triage/"), lines))


def _users(line: Location) -> bool:
    """Whether a line is in a file of the user, and not in an installed package or in Python."""
    home = _HOME.match(line.file)
    return line.file.endswith(".py") and home is not None and home[1] is None


def _used(ended: Ended, limits: Limits) -> str:
    memory = "" if limits.memory is None else f" of {_gigabytes(limits.memory)}"
    return f"The process ran for {ended.seconds:.1f} s of {limits.seconds:.0f} s, and used {_gigabytes(ended.memory)}{memory}."


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _context(job: Job, command_line: str) -> DiagnosticContext:
    def internal(stage: str, error: BaseException) -> Rule:
        return InternalError(stage=stage, error=str(error))

    context = DiagnosticContext(
        tool=Tool("onnxplain", importlib.metadata.version("onnxplain"), URI),
        subject=job.model.name,
        options=job.model.options.diagnostics,
        internal_error=internal,
        cut_short=lambda stage, reason: ExportCutShort(stage=stage, reason=reason),
        command_line=command_line,
        family=job.model.family,
    )
    for setting in job.model.options.settings:
        context.event(setting)
    return context


def _finding(run: Mapping[str, Any], result: Mapping[str, Any]) -> LoggedFinding:
    descriptor = run["tool"]["driver"]["rules"][integer(result["ruleIndex"])]
    names = descriptor.get("properties", {}).get("arguments", ())
    values = dict(zip(map(string, names), map(string, result["message"].get("arguments", ())), strict=False))
    level, message = string(result["level"]), _message(descriptor, result)
    return LoggedFinding(
        rule=string(result["ruleId"]),
        title=string(descriptor.get("name", "")),
        level=level,
        fails=level == "error",
        fingerprint=string(result["partialFingerprints"][_NAME]).partition(":")[0],
        message=message,
        cause=shared_cause(values, _line(result), message),
    )


def _message(descriptor: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """The message without what the log adds for its viewers, such as links to further places."""
    template = descriptor.get("messageStrings", {}).get("default", {}).get("text")
    values = result["message"].get("arguments", ())
    if template is None:
        return string(result["message"]["text"])
    return _NUMBER.sub(lambda found: string(values[int(found[1])]) if int(found[1]) < len(values) else found[0], string(template))


def _line(result: Mapping[str, Any]) -> str:
    """The line of a result, without folders of this machine."""
    for location in result.get("locations", ()):
        if place := location.get("physicalLocation"):
            line = place.get("region", {}).get("startLine")
            return urllib.parse.unquote(string(place["artifactLocation"]["uri"])) + (f":{line}" if line else "")
    return ""


def _weights(facts: pathlib.Path) -> int:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return int(json.loads(facts.read_bytes())["weights"])
    return 0
