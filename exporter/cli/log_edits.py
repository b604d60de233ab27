"""The edits in a log, checked: a log may come from anybody, so its fixes are data until they fit the files in front of the user."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from onnxplain.diagnostics import SourceTree, Unreachable, integer, opened_sarif, present_results, string

Position = tuple[int, int]
"""A line, and a column in UTF-16 code units, both from 1."""


@dataclasses.dataclass(frozen=True, order=True)
class Replacement:
    """Replaces the text between two positions.

    Attributes:
        start: Where the text begins.
        end: Where it ends, exclusive.
        text: What comes in its place.
        deleted: The text as the log recorded it; None if the log did not.
        lines: The whole lines around it, likewise, without the end of the last one.
    """

    start: Position
    end: Position
    text: str
    deleted: str | None = None
    lines: str | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether the log tells what was there: the deleted text, or the lines around an insertion."""
        return (self.lines if self.start == self.end else self.deleted) is not None


@dataclasses.dataclass(frozen=True)
class LogFix:
    """One fix of a log.

    Attributes:
        description: What it does.
        confidence: What it does to the model's results.
        changes: Its replacements, by the real path of the file.
        refused: Why it must not be applied; empty if it may.
    """

    description: str
    confidence: str
    changes: Mapping[pathlib.Path, Sequence[Replacement]]
    refused: str = ""


@dataclasses.dataclass(frozen=True)
class LogFinding:
    """A finding of a log that counts.

    Attributes:
        rule: Its rule's id.
        fixes: Its fixes that have edits.
        still: The text of its place, which must not have changed, by file.
    """

    rule: str
    fixes: Sequence[LogFix]
    still: Mapping[pathlib.Path, Sequence[Replacement]]


def findings(log: pathlib.Path, sources: SourceTree) -> list[LogFinding]:
    """The findings of `log` that are neither suppressed nor gone.

    Raises:
        UnreadableLog: The file is no log of onnxplain, or its fixes are not what onnxplain writes: positions that are no positions,
            replacements that overlap, a file under two names.
    """
    with opened_sarif(log) as document:
        if not document["runs"]:
            raise ValueError("it has no runs")
        return [
            _finding(result, run.get("originalUriBaseIds") or {}, sources)
            for run in document["runs"]
            for result in present_results(run)
            if not result.get("suppressions")
        ]


def _finding(result: Mapping[str, Any], bases: Mapping[str, Any], sources: SourceTree) -> LogFinding:
    still: dict[pathlib.Path, list[Replacement]] = {}
    for location in result.get("locations") or ():
        place = location.get("physicalLocation") or {}
        if "startColumn" in (place.get("region") or {}):
            try:
                path = sources.find(place["artifactLocation"], bases)
            except Unreachable:
                continue
            still.setdefault(path, []).append(_replacement({"deletedRegion": place["region"]}))
    fixes = [_fix(fix, bases, sources) for fix in result.get("fixes") or ()]
    return LogFinding(string(result["ruleId"]), fixes, still)


def _fix(fix: Mapping[str, Any], bases: Mapping[str, Any], sources: SourceTree) -> LogFix:
    changes: dict[pathlib.Path, list[Replacement]] = {}
    refused = ""
    for change in fix["artifactChanges"]:
        replacements = [_replacement(each) for each in change["replacements"]]
        _check_apart(replacements)
        try:
            path = sources.find(change["artifactLocation"], bases)
        except Unreachable as error:
            refused = refused or str(error)
            continue
        if path in changes:
            raise ValueError(f"a fix changes {path.name!r} under two names")
        if not all(each.is_recorded for each in replacements):
            refused = refused or f"the log does not hold the text of {path.name!r} that it replaces"
        changes[path] = replacements
    return LogFix(string(fix["description"]["text"]), string(fix["properties"]["confidence"]), changes, refused)


def _replacement(each: Mapping[str, Any]) -> Replacement:
    region = each["deletedRegion"]
    line, column, end_line, end_column = (integer(region[name], least=1) for name in ("startLine", "startColumn", "endLine", "endColumn"))
    start, end = (line, column), (end_line, end_column)
    if end < start:
        raise ValueError(f"a region ends at {end}, before its start at {start}")
    inserted = each.get("insertedContent", {"text": ""})
    if "text" not in inserted:
        raise ValueError(f"the edit at line {line} inserts something else than text")
    text = string(inserted["text"])
    lines = each.get("properties", {}).get("lines")
    deleted = region.get("snippet", {}).get("text")
    return Replacement(start, end, text, None if deleted is None else string(deleted), None if lines is None else string(lines))


def _check_apart(replacements: Sequence[Replacement]) -> None:
    for first, second in itertools.pairwise(sorted(replacements, key=lambda each: (each.start, each.end))):
        if second.start < first.end or second.start == first.start:
            raise ValueError(f"a fix replaces the text at line {second.start[0]} twice")
